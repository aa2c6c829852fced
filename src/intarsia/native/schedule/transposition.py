"""Schedule of copies in another order: tiles, so that each cache line is read and written at one time.

for tiles of the axis that the source has last, for tiles of the last axis
  for elements along the former, unrolled
    for elements along the latter, vectorised
      result = what is computed from the source

Row by row of the result, each element would be on a separate line, which is gone when its neighbour is read.
A tile of elements of 4 bytes is as high as a cache line and as wide as a vector, and transposed in registers
(`emission/transposed_rows.py`).
"""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Literal, Load, LoopVar, Scalar
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp

_TILE: Final = 16
"""Extents of a tile of elements that are not transposed in registers."""
_FEWEST_LANES: Final = 4
"""Least side of a square that is transposed in registers."""
_MOST_SQUARES: Final = 5
"""Maximum number of squares along a short axis.

By measurement (Zen 5, 16 lanes), 5 squares of 4 take 0.74 of the time of a square of 16 and a remainder of 4,
and 7 take 1.2 times that of a square of 16 and a remainder of 12.
"""
_ELEMENT_BYTES: Final = 4
"""Size of the elements that are transposed in registers, in bytes."""


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
    lanes = task.lanes(op)
    is_in_registers = {dtype.numpy.itemsize for dtype in op.dtypes} == {_ELEMENT_BYTES} and lanes > 1
    position = _source_axis(state, op, lanes if is_in_registers else 0, task.isa.caches.first)
    if position is None:
        return None
    high = width = _TILE
    if is_in_registers:
        extent = op.axes[position].extent
        line = task.isa.machine.line_bytes // _ELEMENT_BYTES
        width = _tile_lanes(lanes, min(extent, op.axes[-1].extent))
        high = line if extent >= 2 * line or extent % line == 0 else width
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


def _tile_lanes(lanes: int, extent: int) -> int:
    """Return the side of the squares that are transposed: the vectors' lanes, fewer where an axis is short.

    Elements beside whole squares are read one by one, so a divisor of a short axis is preferred, unless it
    cuts the axis into many small squares.

    Args:
        lanes: Number of lanes of a vector, a power of two.
        extent: Length of the shorter axis.
    """
    if extent >= 2 * lanes:
        return lanes
    sides = [side for side in (16, 8, 4) if side <= min(lanes, extent)]
    return next((side for side in sides if extent % side == 0 and extent <= _MOST_SQUARES * side), sides[0])


def _source_axis(state: LoopState, op: ComputeOp, lanes: int, cached: int) -> int | None:
    """Return the axis along which a source is contiguous, if that is not the last one.

    Args:
        state: State with the stage.
        op: Operation of the stage.
        lanes: Least length of the last axis of a result that is transposed in registers; 0 if it is not.
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
            in_registers = lanes > 0 and itemsize == _ELEMENT_BYTES
            pays = in_registers or prod(part.buffer.shape) * itemsize >= cached
            if (
                position is not None
                and pays
                and inner != last.var
                and op.axes[position].extent >= (_FEWEST_LANES if lanes else _TILE)
                and last.extent >= (lanes or _TILE)
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
