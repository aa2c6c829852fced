"""Schedule of transposed convolutions of blocked tensors: a dense convolution per phase, written interleaved.

for bands of rows
  for blocks of channels, for phases
    for tiles of rows and pixels
      the sums of the tile in registers, as in a convolution
      write the pixels of the tile where the phase has them

Weights of a block and phase are read contiguously, once for each tile of rows. Each block and phase reads the
input of its band again, which stays in the second-level cache.
"""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain, chain_end
from intarsia.native.schedule.convolution import convolution_state, with_padding
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.register_tiles import PixelTile, pixel_tile
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp
from intarsia.native.te.operators.blocked_layout import BLOCKED, CONVOLUTION, OVERLAPPING, PADDING, TRANSPOSED

_CHUNKS: Final = 4
"""Number of chunks of work per thread, if there are enough."""
_KEPT_SHARE: Final = 2
"""Divisor of the second-level cache size that gives the memory for the input of a band."""


def transposed_state(task: ScheduleTask) -> LoopState | None:
    """Return the state of a DAG around one transposed convolution of a blocked tensor; None for others."""
    chain = transposed_chain(task)
    return None if chain is None else state_of_transposed(chain, task, transposed_tile(chain, task))


def transposed_tile(chain: BlockedChain, task: ScheduleTask) -> PixelTile:
    """Return the default register tile of the results of a phase."""
    op = chain.reduction
    rows = op.shape[-3] if _rank(op) > 1 else 1
    registers = task.isa.vector_registers - 1
    return pixel_tile(rows, op.shape[-2], op.shape[1], task.accumulators, registers, costs=task.costs)


def _rank(op: ComputeOp) -> int:
    return (len(op.axes) - 3) // 2


def state_of_transposed(chain: BlockedChain, task: ScheduleTask, tile: PixelTile) -> LoopState:
    """Return the state of a DAG around one transposed convolution with a tile."""
    op = chain.reduction
    rank = _rank(op)
    state = _with_result(chain, task, op.shape[2 : 2 + rank], tile)
    state = _with_sums(state, chain.anchor, rank, op)
    if chain.pad is not None:
        state = with_padding(state, chain.pad, task)
    return chain.with_rest(state, task)


def transposed_chain(task: ScheduleTask) -> BlockedChain | None:
    """Return the chain of a DAG, with the epilogue of the stage that interleaves phases."""
    anchors = [op for op in task.dag.ops if op.attrs.get(BLOCKED) not in (None, PADDING)]
    op = anchors[0] if len(anchors) == 1 else None
    if not isinstance(op, ComputeOp) or op.attrs[BLOCKED] != TRANSPOSED:
        return None
    (joined,) = task.dag.readers[op]
    assert isinstance(joined, ComputeOp), "so it is declared"
    pad = next((tensor.op.name for tensor in op.inputs if tensor.op.attrs.get(BLOCKED) == PADDING), None)
    target = chain_end(task, joined)
    state = with_inlined(LoopState.initial(task.dag), {op.name, target.name, *([pad] if pad else [])})
    return BlockedChain(state, TRANSPOSED, op.name, target.name, pad)


def _with_result(
    chain: BlockedChain, task: ScheduleTask, strides: tuple[int, ...], tile: PixelTile
) -> LoopState:
    """Split each spatial loop into tiles, elements of a tile, and phases, which go outside."""
    state, target = chain.state, chain.target
    n, o, *spatial, v = [loop.name for loop in state[target].iters]
    sizes = _sizes(tile, len(spatial))
    outer, inner, phases, bands = [], [], [], []
    for dimension, (name, stride, size) in enumerate(zip(spatial, strides, sizes, strict=True)):
        if dimension == len(spatial) - 2:
            band = _band(chain.reduction, size, task)
            state = state.split(target, name, [band, size, stride])
            bands = [f"{name}.0"]
            outer.append(f"{name}.1")
        else:
            state = state.split(target, name, [size, stride])
            outer.append(f"{name}.0")
        inner.append(loop_of_tile(name, dimension, len(spatial)))
        phases.append(f"{name}.{3 if bands and dimension == len(spatial) - 2 else 2}")
    state = state.split(target, o, [tile.blocks])
    chunks = [*bands, f"{o}.0", *phases, *outer]
    unrolled = [*inner[:-1], f"{o}.1", inner[-1]]
    state = state.reorder(target, [n, *chunks, *unrolled, v])
    if task.is_parallel(work_of([chain.reduction])):
        state = _with_threads(state, target, chunks, task)
    for name in unrolled:
        state = state.unroll(target, name)
    return state.vectorize(target, v).compute_at(chain.anchor, target, outer[-1])


def loop_of_tile(name: str, dimension: int, rank: int) -> str:
    """Return the name of the loop over the elements of a tile in a spatial dimension.

    Args:
        name: Name of the loop over the whole dimension.
        dimension: Number of the dimension.
        rank: Number of spatial dimensions.
    """
    return f"{name}.{2 if dimension == rank - 2 else 1}"


def _band(op: ComputeOp, rows: int, task: ScheduleTask) -> int:
    """Return the number of tiles of rows whose input stays in the second-level cache, at most all."""
    count = -(-op.shape[-3] // rows)
    row_bytes = prod(op.inputs[0].shape[1:]) // op.inputs[0].shape[-3] * op.dtypes[0].numpy.itemsize
    kept = max(1, task.isa.caches.second // _KEPT_SHARE // (row_bytes * rows))
    if kept >= count:
        return count
    # Bands of one size need code for no other one.
    return next((size for size in range(kept, kept // 2, -1) if count % size == 0), kept)


def _with_threads(state: LoopState, target: str, chunks: list[str], task: ScheduleTask) -> LoopState:
    """Make the first well balanced loop, else the longest, parallel and outermost."""
    extents = {loop.name: loop.extent or 1 for loop in state[target].iters}
    chosen = next((loop for loop in chunks if _is_shared_well(extents[loop], task.threads)), None)
    chosen = chosen or max(chunks, key=lambda loop: extents[loop])
    loops = [loop.name for loop in state[target].iters]
    n, *rest = [loop for loop in loops if loop != chosen]
    return state.reorder(target, [n, chosen, *rest]).parallel(target, chosen)


def _is_shared_well(extent: int, threads: int) -> bool:
    """Return whether there are many chunks per thread, or equally many for each."""
    return extent >= threads * _CHUNKS or (extent >= 2 * threads and extent % threads == 0)


def _with_sums(state: LoopState, anchor: str, rank: int, op: ComputeOp) -> LoopState:
    """Put the reduction loops outside the register tile, in which the blocks of a pixel are innermost."""
    axes = [loop.name for loop in state[anchor].iters]
    n, block, *rest, lane = axes[: len(op.axes)]
    phases, tile = rest[:rank], [*rest[rank:], block]
    state = state.reorder(anchor, [n, *phases, *axes[len(op.axes) :], *tile, lane])
    for name in tile:
        state = state.unroll(anchor, name)
    return state.vectorize(anchor, lane)


def projection_state(chain: BlockedChain, task: ScheduleTask) -> LoopState:
    """Return the state of a DAG around one transposed convolution of a pixel, which reads weights once."""
    state, target, anchor, op = chain.state, chain.target, chain.anchor, chain.reduction
    n, o, *spatial, v = [loop.name for loop in state[target].iters]
    rows = op.shape[-3] if len(spatial) > 1 else 1
    registers = task.isa.vector_registers - 1
    tile = pixel_tile(rows, op.shape[-2], 1, task.accumulators, registers, costs=task.costs)
    outer, inner = [], []
    for name, size in zip(spatial, _sizes(tile, len(spatial)), strict=True):
        state = state.split(target, name, [size])
        outer.append(f"{name}.0")
        inner.append(f"{name}.1")
    state = state.reorder(target, [n, o, *outer, *inner, v])
    if task.is_parallel(work_of([op])):
        state = state.parallel(target, o)
    for name in inner:
        state = state.unroll(target, name)
    state = state.vectorize(target, v).compute_at(anchor, target, outer[-1])
    return chain.with_rest(_with_sums(state, anchor, 0, op), task)


def _sizes(tile: PixelTile, rank: int) -> tuple[int, ...]:
    """Return the size of a tile in each spatial dimension."""
    return ((1,) * (rank - 2) + (tile.rows, tile.pixels))[-rank:]


def overlapping_state(task: ScheduleTask) -> LoopState | None:
    """Return the state of a DAG with a convolution and overlapping sums of its results; None for others.

    One row of sums is computed at a time; the sums of a phase have a constant stride, and are vectorised.
    """
    overlapping = [op for op in task.dag.ops if OVERLAPPING in op.attrs]
    op = overlapping[0] if len(overlapping) == 1 else None
    chain = _products(op, task) if isinstance(op, ComputeOp) else None
    if not isinstance(op, ComputeOp) or chain is None:
        return None
    target, rank = chain_end(task, op), len(op.shape) - 2
    state = _with_phases(convolution_state(chain, task), op, task)
    if target is not op:
        n, m, *spatial = [loop.name for loop in state[target.name].iters]
        state = state.reorder(target.name, [n, *spatial[:-1], m, spatial[-1]])
        state = state.vectorize(target.name, spatial[-1]).compute_at(op.name, target.name, rank - 1)
    if task.is_parallel(work_of([chain.reduction])):
        state = state.parallel(target.name, min(1, rank - 1))
    return state


def _products(op: ComputeOp, task: ScheduleTask) -> BlockedChain | None:
    """Return the chain of the convolution whose results are summed."""
    (products,) = op.inputs
    if products.op.attrs.get(BLOCKED) != CONVOLUTION:
        return None
    target, anchor = chain_end(task, op), f"{products.op.name}.local"
    kept = {anchor, products.op.name, op.name, target.name}
    state = with_inlined(LoopState.initial(task.dag).cache_write(products.op, "local"), kept)
    left = frozenset({op.name, target.name})
    return BlockedChain(state, CONVOLUTION, anchor, products.op.name, None, left)


def _with_phases(state: LoopState, op: ComputeOp, task: ScheduleTask) -> LoopState:
    """Split the last dimension into phases, and a vector of results of each."""
    strides = op.attrs[OVERLAPPING]
    assert isinstance(strides, tuple), "so it is declared"
    assert isinstance(strides[-1], int), "so it is declared"
    n, m, *outer, w = [loop.name for loop in state[op.name].iters]
    state = state.split(op.name, w, [task.lanes(op), strides[-1]])
    state = state.reorder(op.name, [n, *outer, f"{w}.0", f"{w}.2", m, f"{w}.1"])
    return state.vectorize(op.name, f"{w}.1")
