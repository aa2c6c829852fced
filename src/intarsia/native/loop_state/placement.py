"""Check that every stage is computed before it is read."""

from __future__ import annotations

from intarsia.native.loop_state.illegal_step import IllegalStepError
from intarsia.native.loop_state.relatives import consumers
from intarsia.native.loop_state.stage import ComputeAt
from intarsia.native.loop_state.state import LoopState
from intarsia.native.loop_state.steps import ComputeAtStep, ComputeInlineStep, ComputeRootStep


def check_placement(state: LoopState) -> None:
    """Check that each stage is computed where all its readers can use its values.

    The values of a stage inside a loop are available inside that loop only. A history may pass through states
    in which a reader is still outside, so check its last state.

    Raises:
        IllegalStepError: A reader is outside the loop; the error names the stage and the step that attached
            it.
    """
    for stage_id, stage in enumerate(state.stages):
        if stage.compute_at is not ComputeAt.ITER:
            continue
        target, loop = state.attach_map.positions[stage_id]
        readers = sorted(consumers(state, stage_id))
        outside = [reader for reader in readers if not _is_inside(state, reader, target, loop)]
        if outside:
            names = ", ".join(state.stages[reader].op.name for reader in outside)
            position = f"loop {state.stages[target].iters[loop].name} of stage {state.stages[target].op.name}"
            raise _misplaced_error(
                state, stage_id, f"is inside {position}, and read outside of it by {names}"
            )


def _is_inside(state: LoopState, stage_id: int, target: int, loop: int) -> bool:
    """Return whether a stage is computed inside a loop."""
    if stage_id == target:
        return True
    while stage_id in state.attach_map.positions:
        stage_id, inside = state.attach_map.positions[stage_id]
        if stage_id == target:
            return inside >= loop
    return False


def _misplaced_error(state: LoopState, stage_id: int, problem: str) -> IllegalStepError:
    name = state.stages[stage_id].op.name
    step_id = _placing_step(state, name)
    step = "" if step_id is None else f"step {step_id}: "
    help_text = "compute it at a loop around all that read it, or those inside the loop too"
    return IllegalStepError(f"{step}stage {name} {problem}", step_id, name, help=help_text)


def _placing_step(state: LoopState, name: str) -> int | None:
    """Return the number of the last step that moved the stage, by replaying the history."""
    state_before, last_move = LoopState.initial(state.initial_dag), None
    for step_id, step in enumerate(state.transform_steps):
        is_move = isinstance(step, ComputeAtStep | ComputeInlineStep | ComputeRootStep)
        if is_move and state_before.stages[step.stage_id].op.name == name:
            last_move = step_id
        state_before = state_before.apply(step)
    return last_move
