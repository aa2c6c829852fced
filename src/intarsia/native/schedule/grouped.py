"""Schedule of grouped convolutions of blocked tensors: register tiles of pixels by blocks of one group.

The blocks of a group share their input. If channels have any order, each step of the reduction looks up the
offset of its channel, once for the whole tile.
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
"""Maximum number of blocks of a tile; more weight vectors per step cannot be loaded in time."""
_KEPT_FREE: Final = 1
# Costs in multiplications, measured on images of 7 to 28 pixels per row (Zen 3, AVX2).
_PIXEL_COST: Final = 2
"""Cost of an input element, which often comes from the second-level cache."""
_STEP_COST: Final = 4
"""Overhead of a reduction step: counters, branches, and the offset of the channel."""

_SHAPE_COST: Final = 1.05
"""Factor of the cost of a second shape of tiles."""


class GroupedChoice(NamedTuple):
    """Choice for one grouped convolution.

    Attributes:
        blocks: Number of blocks of a tile, all of one group.
        pixels: Number of pixels of a tile.
        is_by_group: Whether all rows of a group are computed before the next one.
    """

    blocks: int
    pixels: int
    is_by_group: int


def grouped_choice(chain: BlockedChain, task: ScheduleTask) -> GroupedChoice:
    """Return the default choice."""
    op = chain.reduction
    taps = prod(axis.extent for axis in op.reduce_axes[-(len(op.shape) - 3) :])
    tile = _tile(own_blocks(op), op.shape[-2], _most_pixels(taps, task), task)
    return GroupedChoice(*tile, int(_is_by_group(op, task)))


def grouped_state(chain: BlockedChain, task: ScheduleTask, choice: GroupedChoice | None = None) -> LoopState:
    """Return the state of a DAG around one grouped convolution.

    Args:
        chain: Chain around the convolution.
        task: DAG and machine.
        choice: Choice to apply; the default choice if not given.
    """
    op, target, anchor = chain.reduction, chain.target, chain.anchor
    group_blocks = own_blocks(op)
    block_count, pixel_count, is_by_group = grouped_choice(chain, task) if choice is None else choice
    n, o, *rows, w, v = [loop.name for loop in chain.state[target].iters]
    state = chain.state.split(target, o, [group_blocks // block_count, block_count]).split(
        target, w, [pixel_count]
    )
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
    """Return the number of blocks of result channels of a group."""
    blocks = op.attrs[OWN_BLOCKS]
    assert isinstance(blocks, int), "the declaration says so"
    return blocks


def _is_by_group(op: ComputeOp, task: ScheduleTask) -> bool:
    """Return whether threads compute whole groups, so that the weights of a group stay in the cache."""
    groups = op.shape[1] // own_blocks(op)
    is_balanced = groups % task.threads == 0 or groups >= 4 * task.threads
    # Up to its size, the weights of all groups stay in the first-level cache during a row.
    return is_balanced and _weight_bytes(op) > task.isa.caches.first


def _weight_bytes(op: ComputeOp) -> int:
    return prod((op.shape[1], op.shape[-1], *(axis.extent for axis in op.reduce_axes))) * 4


def _most_pixels(taps: int, task: ScheduleTask) -> int:
    """Return the maximum number of pixels of a tile of one block.

    Sums, a vector of weights and an input element leave a register free, without which sums are spilled: 14
    pixels reach 32 GFLOP/s where 12 reach 71 (AVX2, 8 channels for each of 8 groups, 5 x 5 taps, 40 x 40
    pixels). Windows of one tap read other addresses for each pixel and step, which need registers as well.
    """
    return task.isa.vector_registers // 2 if taps == 1 else task.accumulators


def _tile(group_blocks: int, columns: int, most_pixels: int, task: ScheduleTask) -> tuple[int, int]:
    """Return the register tile with the least cost: blocks of a group by pixels of a row.

    Registers contain the sums, an element for each pixel if several blocks share it, and a vector of weights.
    """
    registers, pixel_cost = task.isa.vector_registers, _PIXEL_COST * task.costs.second
    costs = {
        (blocks, pixels): _cost(blocks, pixels, columns, pixel_cost)
        for blocks in range(1, min(group_blocks, _MOST_BLOCKS) + 1)
        if group_blocks % blocks == 0
        for pixels in range(1, min(columns, most_pixels) + 1)
        if (blocks + (blocks > 1)) * pixels + _KEPT_FREE <= registers
    }
    return min(costs, key=lambda tile: (costs[tile], tile)) if costs else (1, 1)


def _cost(blocks: int, pixels: int, columns: int, pixel_cost: float) -> float:
    """Return the cost per result; the remainder of a row is a smaller tile, which needs code of its own."""
    across, rest = divmod(columns, pixels)
    widths = [(across, pixels), (1, rest)] if rest else [(across, pixels)]
    steps = sum(many * (width * (blocks + pixel_cost) + blocks + _STEP_COST) for many, width in widths)
    return steps / (columns * blocks) * (_SHAPE_COST if rest else 1)
