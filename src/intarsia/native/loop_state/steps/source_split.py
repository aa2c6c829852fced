"""The splits that other splits follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.native.loop_state.steps.split_step import SplitStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.steps.step import TransformStep


def source_split(step: TransformStep, state: LoopPreview, place: int) -> SplitStep:
    """The split at a place of the history.

    Raises:
        IllegalStepError: There is none.
    """
    history = state.transform_steps
    if not (0 <= place < len(history) and isinstance(history[place], SplitStep)):
        raise state.refusal(step, f"found step {place} as the split to follow; it is none, or comes later")
    found = history[place]
    assert isinstance(found, SplitStep), "checked above"
    return found
