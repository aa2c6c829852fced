"""Schedules of products on a GPU: tiles in shared memory, tiles of them in registers.

A block computes a tile of the result. Its threads read tiles of both factors into shared memory, a step of
the reduction at a time. Each thread computes a small tile of its own in registers, from which an elementwise
reader of the product is computed. Convolutions are products too: a tile of the input is the box that the
windows of the block's tile read, padding included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import LoopVar
from intarsia.native.dag import AccessAnalyzer
from intarsia.native.gpu.schedule_stages import BLOCK_AXIS, THREAD_AXIS, WARP, compute_op
from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp, Operation
from intarsia.support.errors import UsageError

_EDGES: Final = (64, 32, 16)
"""Extents of a block's tile in each direction that are tried, largest first."""
_ENOUGH_BLOCKS: Final = 64
"""Number of blocks from which on a tile is not made smaller: half of what an A100 computes at once."""
_MOST_THREADS: Final = 512
"""Number of threads of a block up to which each one has 128 registers."""
_REGISTER_EDGE: Final = 4
"""Extent of a thread's tile in each direction: 16 sums for 8 loads from shared memory."""
_COPY_BYTES: Final = 16
"""Size of the widest copy from memory into shared memory."""
_STEP: Final = 16
"""Number of elements of the reduction in one step."""


@dataclass(frozen=True, slots=True)
class _AxisTile:
    """The tile of an axis: number of threads, and of elements of each thread."""

    threads: int = 1
    elements: int = 1

    @property
    def extent(self) -> int:
        return self.threads * self.elements


def inputs_of_product(dag_analyzer: AccessAnalyzer, op: Operation) -> tuple[Operation, ...]:
    """Return the factors of a product: the two inputs of a sum, each read along axes of its own; else ()."""
    if not isinstance(op, ComputeOp) or op.combiner is None or len(op.buffers) != 1:
        return ()
    is_empty = any(axis.extent == 0 for axis in (*op.axes, *op.reduce_axes))
    if is_empty or not dag_analyzer.needs_multi_level_tiling(op):
        return ()
    inputs = tuple(dag_analyzer.read_from[op])
    if len(inputs) != 2 or not all(_own_axes(dag_analyzer, op, inputs).values()):
        return ()
    return inputs


def product(state: LoopState, name: str, reader: str | None, filled: tuple[str, ...]) -> LoopState:
    """Schedule a product, and the elementwise stage that reads it.

    Args:
        state: State in which no loop of the stages has been changed.
        name: Name of the product.
        reader: Name of its elementwise reader, which becomes the kernel's result; None for none.
        filled: Names of stages that compute a factor; they are computed in shared memory.

    Raises:
        UsageError: The stage is no product.
    """
    op = compute_op(state, name)
    analyzer = AccessAnalyzer(state.current_dag)
    factors = inputs_of_product(analyzer, op)
    if not factors:
        raise UsageError(f"{name} is no product of two tensors")
    tiles = _tiles(op, _own_axes(analyzer, op, factors))
    names = [factor.name for factor in factors]
    result, sums = (name, name) if reader is None else (reader, name)
    if reader is None:
        position = state.stage_id(name)
        state = state.cache_write(name, "local")
        sums = state.stages[position].op.name
    shared = []
    for factor in names:
        if factor in filled:
            shared.append(factor)
            continue
        position = state.stage_id(factor)
        state = state.cache_read(factor, "shared", [sums])
        shared.append(state.stages[position + 1].op.name)
    state = _with_result_tiles(state, result, tiles)
    state = _with_sums(state, sums, result, len(op.axes))
    threads = prod(tile.threads for tile in tiles)
    steps = _steps(op)
    for source, tile_name in zip(factors, shared, strict=True):
        width = 1 if source.name in filled else _copied_width(analyzer, op, source, tiles, steps)
        state = _filled_together(state, tile_name, sums, len(op.reduce_axes), threads, width)
    return state


def _steps(op: ComputeOp) -> list[int]:
    """Return the number of elements of each reduced axis in one step."""
    steps: list[int] = []
    budget = _STEP
    for axis in reversed(op.reduce_axes):
        steps.insert(0, min(axis.extent, budget))
        budget = max(1, budget // steps[0])
    return steps


def _copied_width(
    analyzer: AccessAnalyzer, op: ComputeOp, factor: Operation, tiles: list[_AxisTile], steps: list[int]
) -> int:
    """Return how many elements of a factor a thread copies at once: those of 16 bytes, if rows are aligned.

    Rows are, where the last index of the factor is an axis whose tiles and whole extent are multiples.
    """
    extents = {axis.var: tile.extent for axis, tile in zip(op.axes, tiles, strict=True)}
    extents |= {axis.var: step for axis, step in zip(op.reduce_axes, steps, strict=True)}
    (buffer,) = factor.buffers
    lengths = [buffer.shape[-1]]
    for indices in analyzer.read_from[op][factor]:
        last = indices[-1]
        lengths.append(extents.get(last, 1) if isinstance(last, LoopVar) else 1)
    return gcd(max(1, _COPY_BYTES // buffer.dtype.numpy.itemsize), *lengths)


def _own_axes(
    analyzer: AccessAnalyzer, op: ComputeOp, inputs: tuple[Operation, ...]
) -> Mapping[Operation, tuple[int, ...]]:
    """Return for each input the numbers of the spatial axes that only its indices depend on."""
    used: dict[Operation, set[LoopVar]] = {}
    for source in inputs:
        parts = (
            part
            for indices in analyzer.read_from[op][source]
            for index in indices
            for part, _ in scalar_post_order(index)
        )
        used[source] = {part for part in parts if isinstance(part, LoopVar)}
    numbers = {}
    for source in inputs:
        others: set[LoopVar] = set().union(*(used[other] for other in inputs if other is not source))
        numbers[source] = tuple(
            number
            for number, axis in enumerate(op.axes)
            if axis.extent > 1 and axis.var in used[source] and axis.var not in others
        )
    return numbers


def _tiles(op: ComputeOp, axes_of_inputs: Mapping[Operation, tuple[int, ...]]) -> list[_AxisTile]:
    """Return the tile of each spatial axis."""
    for edge in _EDGES:
        tiles = [_AxisTile() for _ in op.axes]
        for numbers in axes_of_inputs.values():
            _cover(op, numbers, edge, tiles)
        blocks = prod(-(-extent // tile.extent) for extent, tile in zip(op.shape, tiles, strict=True))
        # A smaller tile than a warp's edge leaves threads of a warp idle: it is for many threads only.
        is_small_enough = blocks >= _ENOUGH_BLOCKS or edge <= WARP
        if is_small_enough and prod(tile.threads for tile in tiles) <= _MOST_THREADS:
            break
    return tiles


def _cover(op: ComputeOp, numbers: tuple[int, ...], edge: int, tiles: list[_AxisTile]) -> None:
    """Choose tiles of the axes of one direction, innermost first, until they have `edge` elements."""
    has_elements = False
    for number in reversed(numbers):
        extent = min(op.axes[number].extent, edge)
        elements = _REGISTER_EDGE if not has_elements and extent >= _REGISTER_EDGE else 1
        has_elements |= elements > 1
        tiles[number] = _AxisTile(-(-extent // elements), elements)
        edge //= tiles[number].extent
        if edge < 2:
            return


def _with_result_tiles(state: LoopState, name: str, tiles: list[_AxisTile]) -> LoopState:
    """Split the loops of the result into blocks, threads, and elements of a thread."""
    axes = [loop.name for loop in state[name].iters]
    for axis, tile in zip(axes, tiles, strict=True):
        state = state.split(name, axis, [tile.threads, tile.elements])
    state = state.reorder(name, [f"{axis}.{level}" for level in range(3) for axis in axes])
    count = len(axes)
    for position in range(2):
        if count > 1:
            state = state.fuse(name, range(position, position + count))
    state = state.bind(name, 0, BLOCK_AXIS).bind(name, 1, THREAD_AXIS)
    for axis in axes:
        state = state.unroll(name, f"{axis}.2")
    return state


def _with_sums(state: LoopState, name: str, result: str, rank: int) -> LoopState:
    """Compute the sums of a thread in its loop, with the steps of the reduction outermost."""
    loops = [loop.name for loop in state[name].iters]
    spatial, reduced = loops[:rank], loops[rank:]
    for axis, step in zip(reduced, _steps(compute_op(state, name)), strict=True):
        state = state.split(name, axis, [step])
    order = [*(f"{axis}.0" for axis in reduced), *(f"{axis}.1" for axis in reduced), *spatial]
    state = state.reorder(name, order).compute_at(name, result, 1)
    for axis in spatial:
        state = state.unroll(name, axis)
    return state


def _filled_together(
    state: LoopState, name: str, sums: str, depth: int, threads: int, width: int
) -> LoopState:
    """Compute a stage in each step of the reduction, its elements shared among the threads.

    Args:
        state: The state.
        name: Name of the stage.
        sums: Name of the stage that sums.
        depth: Number of reduced axes.
        threads: Number of threads of a block.
        width: Number of elements that a thread copies at once.
    """
    count = len(state[name].iters)
    state = state.compute_at(name, sums, depth - 1)
    if count > 1:
        state = state.fuse(name, range(count))
    if width == 1:
        return state.split(name, 0, [threads]).bind(name, 1, THREAD_AXIS)
    return state.split(name, 0, [threads, width]).bind(name, 1, THREAD_AXIS).vectorize(name, 2)
