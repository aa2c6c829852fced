"""Lookups and checks that steps share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from intarsia.native.loop_state.iterator import Iterator
from intarsia.native.loop_state.stage import ComputeAt, Stage
from intarsia.native.te.tensor import ComputeOp

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.steps.step import TransformStep


def loop_of(step: TransformStep, state: LoopPreview, iter_id: int) -> Iterator:
    """Return a loop of the step's stage.

    Raises:
        IllegalStepError: There is no such loop.
    """
    loops = state.stages[step.stage_id].iters
    if not 0 <= iter_id < len(loops):
        loops_text = f"there are loops 0 to {len(loops) - 1}" if loops else "the stage has no loops"
        raise state.step_error(step, f"found loop {iter_id}; {loops_text}")
    return loops[iter_id]


def movable_stage(step: TransformStep, state: LoopPreview) -> Stage:
    """Return the step's stage.

    Raises:
        IllegalStepError: It is not computed element by element.
    """
    stage = state.stages[step.stage_id]
    if not isinstance(stage.op, ComputeOp):
        raise state.step_error(
            step, "the stage is given, or written as a whole; expected a computation by elements"
        )
    return stage


def untouched_stage(step: TransformStep, state: LoopPreview) -> Stage:
    """Return the step's stage, whose loops no step has changed.

    Raises:
        IllegalStepError: It is not computed element by element, a step changed its loops, it is inlined, or
            stages are inside its loops.
    """
    stage = movable_stage(step, state)
    if not stage.has_declared_loops:
        raise state.step_error(
            step, "earlier steps changed the stage's loops; expected this step before those"
        )
    if stage.compute_at is ComputeAt.INLINED:
        raise state.step_error(step, "the stage is inlined; expected one with a buffer")
    refuse_inside(step, state)
    return stage


def refuse_inside(step: TransformStep, state: LoopPreview) -> None:
    """Refuse the step if a stage is inside the loops of its stage.

    Raises:
        IllegalStepError: A stage is inside these loops.
    """
    for inside, (target, _) in state.attach_map.positions.items():
        if target == step.stage_id:
            raise state.step_error(step, f"stage {state.stages[inside].op.name} is inside the stage's loops")


def without_ranges(loops: tuple[Iterator, ...]) -> tuple[Iterator, ...]:
    """Return loops without ranges, which are unknown after their stage has moved."""
    return tuple(replace(loop, range=None) for loop in loops)
