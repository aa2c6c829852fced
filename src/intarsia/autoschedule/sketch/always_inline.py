"""Sketch rule: inline cheap stages."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import analyzer_of, may_be_inlined
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class AlwaysInline:
    """Inline a stage of negligible cost per element (Ansor, table 1, rule 2).

    Stage:
        S
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
          for j (0,8)
            for k (0,64)
              C = ...
    """

    name: str = "always_inline"

    def meets(self, _policy: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply to strictly inlineable stages that are not outputs."""
        op = state.stages[stage_id].op
        is_cheap = analyzer_of(state.current_dag).is_strictly_inlineable(op)
        is_met = is_cheap and may_be_inlined(state, stage_id)
        return Condition.APPLY_AND_SKIP_REST if is_met else Condition.PASS

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state."""
        return ((state.compute_inline(stage_id), stage_id - 1),)
