"""Validation of step histories as programs that can be lowered."""

from __future__ import annotations

from collections.abc import Iterable

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState
from intarsia.native.loop_state.placement import check_placement
from intarsia.native.loop_state.steps import TransformStep
from intarsia.native.lowering import infer_bound
from intarsia.support.errors import UsageError


def replay_program(dag: ComputeDAG, steps: Iterable[TransformStep]) -> LoopState | None:
    """Replay a history and infer the ranges of all loops; None if the result is not a program.

    It is not a program if a step is impossible, a length is open, a stage is computed where its readers
    cannot read it, or a
    parallel loop is inside another one.

    Args:
        dag: Computation that the history starts from.
        steps: Steps of the history.
    """
    try:
        return with_bounds(LoopState.replay(dag, steps))
    except UsageError:
        return None


def with_bounds(state: LoopState) -> LoopState | None:
    """Infer the ranges of all loops of a state; None if it is not a program, as in `replay_program`."""
    try:
        check_placement(state)
        bounded = infer_bound(state.initial_dag, state)
    except UsageError:
        return None
    return None if has_nested_parallel(bounded) else bounded


def has_nested_parallel(state: LoopState) -> bool:
    """Whether a parallel loop is inside another one, of its own stage or of an enclosing stage."""
    return any(
        _most_parallel(state, stage_id) > 1
        for stage_id, stage in enumerate(state.stages)
        if stage.compute_at is ComputeAt.ROOT
    )


def _most_parallel(state: LoopState, stage_id: int) -> int:
    """Return the largest number of nested parallel loops, from the loops of a stage inwards."""
    count = most = 0
    for loop_id, loop in enumerate(state.stages[stage_id].iters):
        count += loop.annotation is IteratorAnnotation.PARALLEL
        inside = state.attach_map.attached.get((stage_id, loop_id), ())
        most = max(most, *(count + _most_parallel(state, attached_id) for attached_id in inside), count)
    return most
