"""Sketch rule for GPUs: inline every stage without a reduction."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import may_be_inlined
from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp
from intarsia.native.te.op_attrs import SIMPLIFY_CONST


@dataclass(frozen=True, slots=True)
class InlineElementwise:
    """Inline a stage without a reduction, whatever an element costs: a GPU computes sooner than it stores.

    Ansor's rule for GPUs.

    Stage:
        S
    Before:
        Placeholder: A, B
        for i (0,64)
          for j (0,256)
            S = ...
        for i (0,64)
          for j (0,64)
            for k (0,256)
              C = ...
    After:
        Placeholder: A, B
        for i (0,64)
          for j (0,64)
            for k (0,256)
              C = ...
    """

    name: str = "inline_elementwise"

    def meets(self, _context: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply to stages without a reduction that are not outputs."""
        op = state.stages[stage_id].op
        is_plain = isinstance(op, ComputeOp) and SIMPLIFY_CONST not in op.attrs
        is_met = is_plain and may_be_inlined(state, stage_id)
        return Condition.APPLY_AND_SKIP_REST if is_met else Condition.PASS

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state."""
        return ((state.compute_inline(stage_id), stage_id - 1),)
