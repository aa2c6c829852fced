"""Convolutions in groups of blocked tensors: a tile of pixels by blocks of one group stays in registers.

The blocks of a group share what they read. Where channels lie anywhere, each step of the reduction looks up
where its channel is, once for the whole tile.
"""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.convolution import with_padding
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp
from intarsia.native.te.operators.blocked_layout import OWN_BLOCKS

_MOST_BLOCKS: Final = 5
"""More weights than these are not at hand for each step."""
_CACHED_BYTES: Final = 32 * 1024
"""Weights of all groups up to this size stay in the nearest cache while a row is computed."""
_KEPT_FREE: Final = 1
# Costs in products, by measurement on images of 7 to 28 pixels in a row.
_PIXEL_COST: Final = 2
"""What a number of the input costs: it often comes from the second cache."""
_STEP_COST: Final = 4
"""What a step of the reduction costs besides: counters, jumps, and where the channel is."""


class GroupedChoice(NamedTuple):
    """What is decided of one convolution in groups.

    Attributes:
        blocks: Of a tile, all of one group.
        pixels: Of a tile.
        is_by_group: Whether all rows of a group are computed before the next one.
    """

    blocks: int
    pixels: int
    is_by_group: int


def grouped_choice(chain: BlockedChain, task: ScheduleTask) -> GroupedChoice:
    """What the rule decides."""
    op = chain.reduction
    tile = _tile(own_blocks(op), op.shape[-2], task.isa.vector_registers)
    return GroupedChoice(*tile, int(_is_by_group(op, task)))


def grouped_state(chain: BlockedChain, task: ScheduleTask, choice: GroupedChoice | None = None) -> LoopState:
    """The state of a DAG around one convolution in groups.

    Args:
        chain: The convolution.
        task: The machine.
        choice: What is decided; if not given, what the rule decides.
    """
    op, target, anchor = chain.reduction, chain.target, chain.anchor
    own = own_blocks(op)
    block_count, pixel_count, is_by_group = grouped_choice(chain, task) if choice is None else choice
    n, o, *rows, w, v = [loop.name for loop in chain.state[target].iters]
    state = chain.state.split(target, o, [own // block_count, block_count]).split(target, w, [pixel_count])
    blocks, pixels = f"{o}.2", f"{w}.1"
    chunks = [f"{o}.0", f"{o}.1", *rows] if is_by_group else [*rows, f"{o}.0", f"{o}.1"]
    state = state.reorder(target, [n, *chunks, f"{w}.0", blocks, pixels, v])
    if task.is_parallel(work_of([op])):
        state = state.parallel(target, chunks[0])
    state = state.unroll(target, blocks).unroll(target, pixels).vectorize(target, v)
    state = _with_reduction_outside(state.compute_at(anchor, target, f"{w}.0"), anchor, op)
    if chain.pad is not None and is_by_group:
        lane = state[chain.pad].iters[-1].name
        state = state.compute_at(chain.pad, target, chunks[0]).vectorize(chain.pad, lane)
    elif chain.pad is not None:
        state = with_padding(state, chain.pad, task)
    return chain.with_rest(state, task)


def _with_reduction_outside(state: LoopState, anchor: str, op: ComputeOp) -> LoopState:
    axes = [loop.name for loop in state[anchor].iters]
    n, block, *rest, lane = axes[: len(op.axes)]
    state = state.reorder(anchor, [n, *axes[len(op.axes) :], *rest, block, lane])
    for name in (*rest, block):
        state = state.unroll(anchor, name)
    return state.vectorize(anchor, lane)


def own_blocks(op: ComputeOp) -> int:
    """How many blocks of channels of the result a group has."""
    own = op.attrs[OWN_BLOCKS]
    assert isinstance(own, int), "the declaration says so"
    return own


def _is_by_group(op: ComputeOp, task: ScheduleTask) -> bool:
    """Whether threads compute whole groups, so that their weights stay in the cache."""
    groups = op.shape[1] // own_blocks(op)
    is_balanced = groups % task.threads == 0 or groups >= 4 * task.threads
    return is_balanced and _weight_bytes(op) > _CACHED_BYTES


def _weight_bytes(op: ComputeOp) -> int:
    return prod((op.shape[1], op.shape[-1], *(axis.extent for axis in op.reduce_axes))) * 4


def _tile(own: int, columns: int, registers: int) -> tuple[int, int]:
    """How many blocks of a group by how many pixels of a row are computed at once, with the least cost.

    A sum for each, a number for each pixel if several blocks share it, and a vector of weights in registers.
    """
    found = {
        (blocks, pixels): _cost(blocks, pixels, columns)
        for blocks in range(1, min(own, _MOST_BLOCKS) + 1)
        if own % blocks == 0
        for pixels in range(1, columns + 1)
        if (blocks + (blocks > 1)) * pixels + _KEPT_FREE <= registers
    }
    return min(found, key=lambda tile: (found[tile], tile)) if found else (1, 1)


def _cost(blocks: int, pixels: int, columns: int) -> float:
    """For each result; what is left at the end of a row is a smaller tile."""
    across, rest = divmod(columns, pixels)
    widths = [(across, pixels), (1, rest)] if rest else [(across, pixels)]
    steps = sum(many * (width * (blocks + _PIXEL_COST) + blocks + _STEP_COST) for many, width in widths)
    return steps / (columns * blocks)
