"""Whether every stage is computed before it is read."""

from __future__ import annotations

from intarsia.native.loop_state.illegal_step import IllegalStepError
from intarsia.native.loop_state.relatives import consumers
from intarsia.native.loop_state.stage import ComputeAt
from intarsia.native.loop_state.state import LoopState
from intarsia.native.loop_state.steps import ComputeAtStep, ComputeInlineStep, ComputeRootStep


def check_placement(state: LoopState) -> None:
    """Nothing, if the steps together leave each stage where all that reads it can find its values.

    A stage inside a loop is there for what is inside that loop too; a history may pass through states where a
    reader is not there yet, so this is for its end.

    Raises:
        IllegalStepError: A reader is elsewhere; it names the stage, and the step that placed it.
    """
    for stage_id, stage in enumerate(state.stages):
        if stage.compute_at is not ComputeAt.ITER:
            continue
        target, loop = state.attach_map.places[stage_id]
        readers = sorted(consumers(state, stage_id))
        outside = [reader for reader in readers if not _is_inside(state, reader, target, loop)]
        if outside:
            names = ", ".join(state.stages[each].op.name for each in outside)
            where = f"loop {state.stages[target].iters[loop].name} of stage {state.stages[target].op.name}"
            raise _misplaced(state, stage_id, f"is inside {where}, and read outside of it by {names}")


def _is_inside(state: LoopState, stage_id: int, target: int, loop: int) -> bool:
    """Whether a stage's own computation is inside a loop."""
    if stage_id == target:
        return True
    while stage_id in state.attach_map.places:
        stage_id, inside = state.attach_map.places[stage_id]
        if stage_id == target:
            return inside >= loop
    return False


def _misplaced(state: LoopState, stage_id: int, problem: str) -> IllegalStepError:
    name = state.stages[stage_id].op.name
    step_id = _placing_step(state, name)
    step = "" if step_id is None else f"step {step_id}: "
    help_text = "compute it at a loop around all that read it, or those inside the loop too"
    return IllegalStepError(f"{step}stage {name} {problem}", step_id, name, help=help_text)


def _placing_step(state: LoopState, name: str) -> int | None:
    """The last step that moved the stage, found by going through the history."""
    before, found = LoopState.initial(state.initial_dag), None
    for place, step in enumerate(state.transform_steps):
        is_move = isinstance(step, ComputeAtStep | ComputeInlineStep | ComputeRootStep)
        if is_move and before.stages[step.stage_id].op.name == name:
            found = place
        before = before.apply(step)
    return found
