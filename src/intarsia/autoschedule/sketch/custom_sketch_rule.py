"""Rules of the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class CustomSketchRule:
    """A rule of two functions (the field's PreloadCustomSketchRule).

    Attributes:
        meet_condition: From context, state and stage to a Condition, or its number.
        apply_function: From the same to states, each with the stage that comes next.
        name: What it is called in reports.
    """

    meet_condition: Callable[[SketchContext, LoopState, int], Condition | int]
    apply_function: Callable[[SketchContext, LoopState, int], Sequence[tuple[LoopState, int]]]
    name: str = "custom_sketch_rule"

    def meets(self, policy: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """What the first function says."""
        return Condition(self.meet_condition(policy, state, stage_id))

    def apply(self, context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """What the second function makes."""
        return tuple((after, next_id) for after, next_id in self.apply_function(context, state, stage_id))
