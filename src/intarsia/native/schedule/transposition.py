"""Schedule of copies in another order: tiles, so that each cache line is read and written at one time.

for tiles of the axis that the source has last, for tiles of the last axis
  for elements along the former
    for elements along the latter, vectorised
      result = what is computed from the source

Row by row of the result, each element would be on a separate line, which is gone when its neighbour is read.
"""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Load, LoopVar
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp

_TILE: Final = 16
"""Extents of a tile: the elements of a cache line."""
_LEAST_SOURCE: Final = 1 << 15
"""Minimum size of the source in bytes: less stays in the first-level cache in any order."""


def with_transposed_tiles(state: LoopState, name: str, task: ScheduleTask) -> LoopState | None:
    """Schedule a root stage in tiles of two axes; None if it reads nothing across its last axis.

    Args:
        state: State in which the stage has its declared loops.
        name: Name of the stage.
        task: DAG and machine.
    """
    op = state[name].op
    position = _source_axis(state, op) if isinstance(op, ComputeOp) else None
    if position is None or not isinstance(op, ComputeOp):
        return None
    loops = [loop.name for loop in state[name].iters]
    across, last = loops[position], loops[-1]
    state = state.split(name, across, [_TILE]).split(name, last, [_TILE])
    others = [loop for loop in loops if loop not in (across, last)]
    tiles = [f"{across}.0", f"{last}.0"]
    state = state.reorder(name, [*others, *tiles, f"{across}.1", f"{last}.1"])
    if task.is_parallel(work_of([op])):
        outer = [*others, *tiles[:1]]
        if len(outer) > 1:
            state = state.fuse(name, range(len(outer)))
        state = state.parallel(name, 0)
    return state.vectorize(name, f"{last}.1")


def _source_axis(state: LoopState, op: ComputeOp) -> int | None:
    """Return the axis along which a large source is contiguous, if that is not the last one."""
    if op.reduce_axes or len(op.axes) < 2:
        return None
    extents = [axis.extent for axis in op.axes]
    inlined = (stage.op for stage in state.stages if stage.compute_at is ComputeAt.INLINED)
    for stage in (op, *inlined):  # the axes of what is inlined elementwise are those of the result
        if isinstance(stage, ComputeOp) and [axis.extent for axis in stage.axes] == extents:
            position = _read_across(stage)
            if position is not None:
                return position
    return None


def _read_across(op: ComputeOp) -> int | None:
    """Return the axis whose counter is the last index of a large source that is read across the last axis."""
    positions = {axis.var: number for number, axis in enumerate(op.axes)}
    last = op.axes[-1]
    for body in op.bodies:
        for part, _ in scalar_post_order(body):
            if not isinstance(part, Load) or len(part.indices) < 2:
                continue
            *outer, inner = part.indices
            position = positions.get(inner) if isinstance(inner, LoopVar) else None
            is_large = prod(part.buffer.shape) * part.buffer.dtype.numpy.itemsize >= _LEAST_SOURCE
            if (
                position is not None
                and is_large
                and inner != last.var
                and min(op.axes[position].extent, last.extent) >= _TILE
                and any(last.var in {item for item, _ in scalar_post_order(index)} for index in outer)
            ):
                return position
    return None
