"""Convolutions of blocked tensors: a tile of pixels by blocks of channels stays in registers during its sums.

Each step of the reduction loads a vector of weights for each block and one number for each pixel. The loops
over taps and channels are not unrolled: neighbouring taps read the same numbers, and a compiler that sees
that keeps more of them than there are registers. Pixels are outside of blocks in a tile, so that each number
is loaded where it is used. The input is copied with its padding first, which costs little beside products.
"""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.register_tiles import PixelTile, pixel_tile
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp

_CACHED_BYTES: Final = 256 * 1024
"""Weights up to this size stay in the cache while all rows are computed."""


def convolution_state(chain: BlockedChain, task: ScheduleTask) -> LoopState:
    """The state of a DAG around one convolution of a blocked tensor."""
    state = _with_tile(chain, task, chain.reduction)
    if chain.pad is not None:
        state = with_padding(state, chain.pad, task)
    return chain.with_rest(state, task)


def _with_tile(chain: BlockedChain, task: ScheduleTask, op: ComputeOp) -> LoopState:
    """Rows and blocks are not fused: a quotient for each index would be computed in every step."""
    state, target = chain.state, chain.target
    tile = _tile(op, task)
    n, o, *rows, w, v = [loop.name for loop in state[target].iters]
    state = state.split(target, o, [tile.blocks]).split(target, w, [tile.pixels])
    unrolled = [f"{o}.1", f"{w}.1"]
    if tile.rows > 1:
        state = state.split(target, rows[-1], [tile.rows])
        unrolled = [f"{rows[-1]}.1", *unrolled]
        rows[-1] = f"{rows[-1]}.0"
    chunks = [*rows, f"{o}.0"] if _weight_bytes(op) <= _CACHED_BYTES else [f"{o}.0", *rows]
    state = state.reorder(target, [n, *chunks, f"{w}.0", *unrolled, v])
    if task.is_parallel(work_of([op])):
        state = state.parallel(target, chunks[0])
    for name in unrolled:
        state = state.unroll(target, name)
    state = state.vectorize(target, v).compute_at(chain.anchor, target, f"{w}.0")
    return _with_reduction_outside(state, chain.anchor, op)


def _with_reduction_outside(state: LoopState, anchor: str, op: ComputeOp) -> LoopState:
    """In a tile: each step of the reduction for all results, the blocks of a pixel next to each other."""
    axes = [loop.name for loop in state[anchor].iters]
    n, block, *rest, lane = axes[: len(op.axes)]
    tile = [*rest, block]
    state = state.reorder(anchor, [n, *axes[len(op.axes) :], *tile, lane])
    for name in tile:
        state = state.unroll(anchor, name)
    return state.vectorize(anchor, lane)


def _tile(op: ComputeOp, task: ScheduleTask) -> PixelTile:
    spatial = op.shape[2:-1]
    rows = spatial[-2] if len(spatial) > 1 else 1
    return pixel_tile(rows, spatial[-1], op.shape[1], task.accumulators, task.isa.vector_registers - 1)


def with_padding(state: LoopState, pad: str, task: ScheduleTask) -> LoopState:
    """With the loops of a padded copy that is made before everything else."""
    if task.is_parallel(work_of([state[pad].op])):
        state = state.parallel(pad, 1)
    return state.vectorize(pad, len(state[pad].iters) - 1)


def _weight_bytes(op: ComputeOp) -> int:
    """About: a weight for each channel of the result and each step of its reduction."""
    return prod((op.shape[1], op.shape[-1], *(axis.extent for axis in op.reduce_axes))) * 4
