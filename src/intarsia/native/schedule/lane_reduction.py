"""Reductions along rows: partial results in vector lanes, combined at the end."""

from __future__ import annotations

from collections.abc import Container

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Load, LoopVar
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.te import ComputeOp


def with_lane_reductions(state: LoopState, task: ScheduleTask, but: Container[str] = ()) -> LoopState:
    """Return the state with partial results for all reductions along contiguous elements.

    Args:
        state: State in which no loop has been changed yet.
        task: DAG and machine.
        but: Names of stages that stay unchanged.
    """
    names = [stage.op.name for stage in state.stages if stage.compute_at is not ComputeAt.INLINED]
    for name in names:
        op = state[name].op
        if name not in but and isinstance(op, ComputeOp) and runs_along_rows(op):
            state = _with_partial_results(state, name, op, task)
    return state


def runs_along_rows(op: ComputeOp) -> bool:
    """Return whether the last reduction axis, and no spatial axis, is the last index of the reads."""
    if not op.reduce_axes or op.combiner is None:
        return False
    last = op.reduce_axes[-1].var
    spatial = {axis.var for axis in op.axes if axis.extent > 1}
    is_along = False
    for body in op.bodies:
        for scalar, _ in scalar_post_order(body):
            if isinstance(scalar, Load) and scalar.indices:
                inner = {
                    part for part, _ in scalar_post_order(scalar.indices[-1]) if isinstance(part, LoopVar)
                }
                if inner & spatial:
                    return False
                is_along |= scalar.indices[-1] == last
    return is_along


def _is_one_run(op: ComputeOp) -> bool:
    """Return whether several reduction axes cover contiguous memory, so that they can be fused."""
    axes = [axis.var for axis in op.reduce_axes]
    inner = tuple(axis.extent for axis in op.reduce_axes[1:])
    if len(axes) < 2:
        return False
    for body in op.bodies:
        for scalar, _ in scalar_post_order(body):
            if isinstance(scalar, Load) and scalar.indices:
                is_whole = [*scalar.indices[-len(axes) :]] == axes
                if not is_whole or scalar.buffer.shape[1 - len(axes) :] != inner:
                    return False
    return True


def _with_partial_results(state: LoopState, name: str, op: ComputeOp, task: ScheduleTask) -> LoopState:
    """Add stages: several vectors of partial results, one vector, half of it, ...

    until one element is left.
    """
    if _is_one_run(op):
        rank = len(op.axes)
        state = state.fuse(name, range(rank, rank + len(op.reduce_axes)))
    extent, lanes = state[name].iters[-1].extent or 1, task.lanes(op)
    # A masked vector is worth it from just over half of its lanes on; without masks the remainder loop needs
    # more.
    least = lanes // 2 + 1 if task.has_masks else 2 * lanes
    if lanes < 2 or extent < least:
        return state
    vectors = task.by_rows.lane_vectors
    width = lanes * vectors
    while width > lanes and width * 2 > extent:
        width //= 2
    while width > 1:
        axis = state[name].iters[-1]
        state = state.split(name, axis, [width]).rfactor(name, f"{axis.name}.1", len(op.axes))
        width = width // vectors if width > lanes else width // 2
    return state
