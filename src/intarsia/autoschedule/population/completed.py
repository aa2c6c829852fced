"""Histories as programs that can be run."""

from __future__ import annotations

from collections.abc import Iterable

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState
from intarsia.native.loop_state.placement import check_placement
from intarsia.native.loop_state.steps import TransformStep
from intarsia.native.lowering import infer_bound
from intarsia.support.errors import UsageError


def completed(dag: ComputeDAG, steps: Iterable[TransformStep]) -> LoopState | None:
    """The state that a history leads to, with the ranges of all loops, or None if it is no program.

    It is none if a step is not possible, a length is open, a stage is where its readers do not find it, or a
    parallel loop is inside another one.

    Args:
        dag: What the history begins with.
        steps: The history.
    """
    try:
        return with_bounds(LoopState.replay(dag, steps))
    except UsageError:
        return None


def with_bounds(state: LoopState) -> LoopState | None:
    """A state with the ranges of all loops, or None if it is no program, as `completed`."""
    try:
        check_placement(state)
        found = infer_bound(state.initial_dag, state)
    except UsageError:
        return None
    return None if has_nested_parallel(found) else found


def has_nested_parallel(state: LoopState) -> bool:
    """Whether a parallel loop is inside another one, of its own stage or one around."""
    return any(
        _most_parallel(state, stage_id) > 1
        for stage_id, stage in enumerate(state.stages)
        if stage.compute_at is ComputeAt.ROOT
    )


def _most_parallel(state: LoopState, stage_id: int) -> int:
    """The largest number of parallel loops around a statement, from the loops of a stage inwards."""
    count = most = 0
    for place, loop in enumerate(state.stages[stage_id].iters):
        count += loop.annotation is IteratorAnnotation.PARALLEL
        inside = state.attach_map.attached.get((stage_id, place), ())
        most = max(most, *(count + _most_parallel(state, each) for each in inside), count)
    return most
