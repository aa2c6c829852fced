"""Sketch rule: skip a stage."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class SkipStage:
    """Leave a stage unchanged, and continue with the one before (Ansor, rule 1).

    Stage:
        C
    Before:
        Placeholder: A, B
        for i (0,8)
          for j (0,64)
            S = ...
        for i (0,8)
          for j (0,8)
            for k (0,64)
              C = ...
    After:
        Placeholder: A, B
        for i (0,8)
          for j (0,64)
            S = ...
        for i (0,8)
          for j (0,8)
            for k (0,64)
              C = ...
    """

    name: str = "skip_stage"

    def meets(self, _policy: SketchContext, _state: LoopState, _stage_id: int) -> Condition:
        """Apply always, as the last rule."""
        return Condition.APPLY

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return the same state."""
        return ((state, stage_id - 1),)
