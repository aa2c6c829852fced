"""Schedule of copies in another order: tiles, so that each cache line is read and written at one time.

for tiles of the axis that the source has last, for tiles of the last axis
  for elements along the former, unrolled
    for elements along the latter, vectorised
      result = what is computed from the source

Row by row of the result, each element would be on a separate line, which is gone when its neighbour is read.
A tile of elements of 4 bytes is as high as a cache line and as wide as a vector, and transposed in registers
(`emission/transposed_rows.py`), as are squares of 16 narrower elements. Where the last axis has a few
elements only, as of pixels of few channels, both axes become one, so that vectors are full: they are shuffled
out of a vector of each channel (`emission/lane_pattern.py`).
"""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Literal, Load, LoopVar, Scalar
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.machine.shuffled_vectors import TRANSPOSED_BYTES, most_shuffled_vectors
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp

_TILE: Final = 16
"""Extents of a tile of elements that are not transposed in registers."""
_FEWEST_LANES: Final = 4
"""Least side of a square that is transposed in registers."""
_FEWEST_LAST: Final = 2
"""Least length of the last axis of a result whose vectors are transposed or shuffled in registers."""
_MOST_SQUARES: Final = 5
"""Maximum number of squares along a short axis.

By measurement (Zen 5, 16 lanes), 5 squares of 4 take 0.74 of the time of a square of 16 and a remainder of 4,
and 7 take 1.2 times that of a square of 16 and a remainder of 12.
"""
_MASKED_BYTES: Final = 4
"""Size of the elements whose loads and stores take masks, in bytes."""
_MOST_LANES: Final = 16
"""Most lanes of a square that is transposed in registers."""


def with_transposed_tiles(state: LoopState, name: str, task: ScheduleTask) -> LoopState | None:
    """Schedule a root stage in tiles of two axes; None if it reads nothing across its last axis.

    Args:
        state: State in which the stage has its declared loops.
        name: Name of the stage.
        task: DAG and machine.
    """
    op = state[name].op
    if not isinstance(op, ComputeOp):
        return None
    lanes, sizes = min(_MOST_LANES, task.lanes(op)), {dtype.numpy.itemsize for dtype in op.dtypes}
    is_in_registers = len(sizes) == 1 and sizes <= set(TRANSPOSED_BYTES) and lanes > 1
    has_masks = task.has_masks and sizes == {_MASKED_BYTES}
    position = _source_axis(state, op, lanes if is_in_registers else 0, task.isa.caches.first)
    if position is None:
        return None
    if is_in_registers and sizes == {_MASKED_BYTES} and _is_interleaved(op, position, task, lanes):
        return _with_interleaved_rows(state, name, task, lanes * op.axes[-1].extent)
    high = width = _TILE
    if is_in_registers:
        extent = op.axes[position].extent
        line = min(_MOST_LANES, task.isa.machine.line_bytes // max(sizes))
        width = _tile_lanes(lanes, extent, op.axes[-1].extent, has_masks)
        if width < _FEWEST_LANES:
            return None
        high = line if extent >= 2 * line or extent % line == 0 or width == lanes else width
    loops = [loop.name for loop in state[name].iters]
    across, last = loops[position], loops[-1]
    state = state.split(name, across, [high]).split(name, last, [width])
    others = [loop for loop in loops if loop not in (across, last)]
    tiles = [f"{across}.0", f"{last}.0"]
    state = state.reorder(name, [*others, *tiles, f"{across}.1", f"{last}.1"])
    if task.is_parallel(work_of([op])):
        outer = [*others, *tiles[:1]]
        if len(outer) > 1:
            state = state.fuse(name, range(len(outer)))
        state = state.parallel(name, 0)
    state = state.unroll(name, f"{across}.1") if is_in_registers else state
    return state.vectorize(name, f"{last}.1")


def _is_interleaved(op: ComputeOp, position: int, task: ScheduleTask, lanes: int) -> bool:
    """Return whether a vector of the result is shuffled out of one vector for each index of the last axis."""
    is_beside = all(axis.extent == 1 for axis in op.axes[position + 1 : -1])
    return task.loads_masked and is_beside and op.axes[-1].extent <= most_shuffled_vectors(lanes)


def _with_interleaved_rows(state: LoopState, name: str, task: ScheduleTask, block: int) -> LoopState:
    """Fuse all axes behind the outer ones that the result needs, and vectorise blocks of whole vectors."""
    op = state[name].op
    assert isinstance(op, ComputeOp), "the caller has looked"
    last = len(op.axes) - 1
    position = max(n for n in range(last) if op.axes[n].extent > 1)
    state = state.fuse(name, range(position, last + 1))
    rows = state[name].iters[position].name
    state = state.split(name, rows, [block])
    if task.is_parallel(work_of([op])):
        state = state.fuse(name, range(position + 1)) if position else state
        state = state.parallel(name, 0)
    return state.vectorize(name, f"{rows}.1")


def _tile_lanes(lanes: int, across: int, last: int, has_masks: bool) -> int:
    """Return the side of the squares that are transposed: the vectors' lanes, fewer where an axis is short.

    It is 1 where an axis is shorter than the smallest square.

    With masks, one square with more than half of its rows and columns takes fewer instructions than small
    squares. Without, a divisor of a short axis is preferred, unless it cuts the axis into many squares.

    Args:
        lanes: Number of lanes of a vector, a power of two.
        across: Length of the axis that the source has last.
        last: Length of the last axis of the result.
        has_masks: Whether masked vectors are as fast as whole ones.
    """
    extent = min(across, last)
    if extent >= 2 * lanes or (has_masks and 2 * extent > lanes):
        return lanes
    sides = [side for side in (16, 8, _FEWEST_LANES) if side <= min(lanes, extent)]
    largest = max(sides, default=1)
    return next((side for side in sides if extent % side == 0 and extent <= _MOST_SQUARES * side), largest)


def _source_axis(state: LoopState, op: ComputeOp, lanes: int, cached: int) -> int | None:
    """Return the axis along which a source is contiguous, if that is not the last one.

    Args:
        state: State with the stage.
        op: Operation of the stage.
        lanes: Number of lanes of elements that are transposed in registers; 0 for others.
        cached: Size of the first-level cache in bytes: a smaller source stays there in any order.
    """
    if op.reduce_axes or len(op.axes) < 2:
        return None
    extents = [axis.extent for axis in op.axes]
    inlined = (stage.op for stage in state.stages if stage.compute_at is ComputeAt.INLINED)
    for stage in (op, *inlined):  # the axes of what is inlined elementwise are those of the result
        if isinstance(stage, ComputeOp) and [axis.extent for axis in stage.axes] == extents:
            position = _read_across(stage, lanes, cached)
            if position is not None:
                return position
    return None


def _read_across(op: ComputeOp, lanes: int, cached: int) -> int | None:
    """Return the axis whose counter is the last index of a source that is read across the last axis."""
    positions = {axis.var: number for number, axis in enumerate(op.axes)}
    last = op.axes[-1]
    for body in op.bodies:
        for part, _ in scalar_post_order(body):
            if not isinstance(part, Load) or len(part.indices) < 2:
                continue
            *outer, inner = part.indices
            inner = _counter(inner)
            position = positions.get(inner) if isinstance(inner, LoopVar) else None
            itemsize = part.buffer.dtype.numpy.itemsize
            in_registers = lanes > 0 and itemsize == op.dtypes[0].numpy.itemsize
            pays = in_registers or prod(part.buffer.shape) * itemsize >= cached
            if (
                position is not None
                and pays
                and inner != last.var
                and op.axes[position].extent >= (_FEWEST_LANES if lanes else _TILE)
                and last.extent >= (_FEWEST_LAST if lanes else _TILE)
                and any(last.var in {item for item, _ in scalar_post_order(index)} for index in outer)
            ):
                return position
    return None


def _counter(index: Scalar) -> Scalar:
    """Return the counter of which an index is the remainder, such as a lane of a channel; else the index."""
    match index:
        case Arith(op=ArithOp.FLOOR_MOD, operands=(LoopVar() as counter, Literal())):
            return counter
        case _:
            return index
