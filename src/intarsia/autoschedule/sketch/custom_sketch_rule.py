"""User-defined sketch rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class CustomSketchRule:
    """A rule of two functions (PreloadCustomSketchRule of TVM).

    Attributes:
        meet_condition: Function from context, state and stage number to a Condition, or its number.
        apply_function: Function from the same arguments to states, each with its next stage number.
        name: Name of the rule in reports.
    """

    meet_condition: Callable[[SketchContext, LoopState, int], Condition | int]
    apply_function: Callable[[SketchContext, LoopState, int], Sequence[tuple[LoopState, int]]]
    name: str = "custom_sketch_rule"

    def meets(self, policy: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Return the result of `meet_condition`."""
        return Condition(self.meet_condition(policy, state, stage_id))

    def apply(self, context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return the states of `apply_function`."""
        return tuple((after, next_id) for after, next_id in self.apply_function(context, state, stage_id))
