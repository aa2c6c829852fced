"""Sketch rule: unroll transforms by constant matrices."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import listed_axes
from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp, IterKind
from intarsia.native.te.op_attrs import SIMPLIFY_CONST


@dataclass(frozen=True, slots=True)
class SimplifyComputeWithConstTensor:
    """Unroll the axes that index constant tensors, so that these fold; tile the other axes in two.

    The axes are those of the attribute `auto_scheduler_simplify_const_tensor_indices`, as in Winograd's
    transforms; all others have to be spatial.

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
        for j.0 (None)
          for j.1 (None)
            unroll i (0,8)
              S = ...
        for i (0,8)
          for j (0,8)
            for k (0,64)
              C = ...
    """

    name: str = "simplify_compute_with_const_tensor"

    def meets(self, _policy: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply where the operation has the attribute."""
        stage = state.stages[stage_id]
        if not isinstance(stage.op, ComputeOp) or SIMPLIFY_CONST not in stage.op.attrs:
            return Condition.PASS
        listed = listed_axes(stage, SIMPLIFY_CONST)
        rest = [loop for loop in stage.iters if loop.name not in listed]
        is_met = all(loop.kind is IterKind.SPATIAL for loop in rest)
        return Condition.APPLY_AND_SKIP_REST if is_met else Condition.PASS

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state: outer tiles, inner tiles, unrolled loops."""
        listed = listed_axes(state.stages[stage_id], SIMPLIFY_CONST)
        outer, inner, unrolled = [], [], []
        for loop in state.stages[stage_id].iters:
            if loop.name in listed:
                state = state.unroll(stage_id, loop)
                unrolled.append(loop.name)
            else:
                state = state.split(stage_id, loop, [None])
                outer.append(f"{loop.name}.0")
                inner.append(f"{loop.name}.1")
        return ((state.reorder(stage_id, [*outer, *inner, *unrolled]), stage_id - 1),)
