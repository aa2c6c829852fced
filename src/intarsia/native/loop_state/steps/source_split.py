"""Lookup of the split that another split follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.native.loop_state.steps.split_step import SplitStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.steps.step import TransformStep


def source_split(step: TransformStep, state: LoopPreview, step_id: int) -> SplitStep:
    """Return the split at an index of the history.

    Raises:
        IllegalStepError: The step there is no split, or comes later.
    """
    history = state.transform_steps
    if not (0 <= step_id < len(history) and isinstance(history[step_id], SplitStep)):
        raise state.step_error(
            step, f"found step {step_id} as the split to follow; it is none, or comes later"
        )
    source = history[step_id]
    assert isinstance(source, SplitStep), "checked above"
    return source
