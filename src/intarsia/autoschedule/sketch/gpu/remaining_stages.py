"""What sketches for GPUs do with stages that no rule has bound: a thread for each element, or a few."""

from __future__ import annotations

from math import prod

from intarsia.autoschedule.sketch.gpu.bound_loops import is_still_whole, with_blocks_and_threads
from intarsia.autoschedule.sketch.stage_facts import is_placed, listed_axes
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.te import ComputeOp
from intarsia.native.te.op_attrs import SIMPLIFY_CONST


def with_remaining_stages_bound(state: LoopState) -> LoopState:
    """Split all elements of each remaining stage among blocks and threads; their numbers stay open.

    A thread sums in a register. Without a reduction it computes some neighbours at once. Axes that index
    constant tensors are unrolled in each thread. A state with tensorised loops stays as it is: lowering
    schedules the other stages.
    """
    if any(loop.annotation is IteratorAnnotation.TENSORIZE for stage in state.stages for loop in stage.iters):
        return state
    for stage_id in reversed(range(len(state.stages))):
        if _is_remaining(state, stage_id):
            state = _bound(state, stage_id)
    return state


def _is_remaining(state: LoopState, stage_id: int) -> bool:
    stage = state.stages[stage_id]
    if not is_placed(stage) or not is_still_whole(stage):
        return False
    return isinstance(stage.op, ComputeOp) and bool(stage.op.axes) and prod(stage.op.shape) > 0


def _bound(state: LoopState, stage_id: int) -> LoopState:
    op = state.stages[stage_id].op
    assert isinstance(op, ComputeOp), "only these remain"
    rank = len(op.axes)
    if SIMPLIFY_CONST in op.attrs:
        return _with_constants_unrolled(state, stage_id)
    if op.combiner is not None:
        state = state.cache_write(stage_id, "local")
        return with_blocks_and_threads(state, stage_id + 1, rank).compute_at(stage_id, stage_id + 1, 1)
    return with_blocks_and_threads(state, stage_id, rank, has_rest=True).vectorize(stage_id, 2)


def _with_constants_unrolled(state: LoopState, stage_id: int) -> LoopState:
    """Unroll the axes that index constant tensors, and all reductions, behind blocks and threads."""
    stage = state.stages[stage_id]
    assert isinstance(stage.op, ComputeOp), "only these have the attribute"
    listed = listed_axes(stage, SIMPLIFY_CONST)
    names = [loop.name for loop in stage.iters]
    outer = [name for name in names[: len(stage.op.axes)] if name not in listed]
    inner = [name for name in names if name not in outer]
    for name in inner:
        state = state.unroll(stage_id, name)
    state = state.reorder(stage_id, [*outer, *inner])
    return with_blocks_and_threads(state, stage_id, len(outer)) if outer else state
