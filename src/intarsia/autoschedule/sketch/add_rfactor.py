"""Sketch rule: factored reductions (rfactor)."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import (
    extents,
    is_cache_stage,
    needs_multi_level_tiling,
)
from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp, IterKind

PARALLEL_PER_CORE = 16
"""With more elements than this per core, a stage has enough parallelism without rfactor."""


@dataclass(frozen=True, slots=True)
class AddRfactor:
    """Reduce in two stages, partial results in parallel first (Ansor, rule 6).

    It applies where a stage has too few elements to keep all cores busy. The reduction is split in two, and
    either part
    becomes an axis of partial results: the outer one for threads, the inner one, which is then the innermost
    loop, for vectors. The length of the split is open; the state shows 1 for it, because the stages of a
    reduction in parts are made for a number.

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
            for k_0 (0,64)
              C.rf = ...
        for i (0,8)
          for j (0,8)
            for k_0_v (0,64)
              C = ...
    After:
        Placeholder: A, B
        for i (0,8)
          for j (0,64)
            S = ...
        for i (0,8)
          for j (0,8)
            for k_0 (0,64)
              C.rf = ...
        for i (0,8)
          for j (0,8)
            C = ...
    """

    name: str = "add_rfactor"

    def meets(self, policy: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply where a long reduction has few results."""
        stage = state.stages[stage_id]
        if not isinstance(stage.op, ComputeOp) or stage.op.combiner is None or stage.relations:
            return Condition.PASS
        if is_cache_stage(state, stage_id):
            return Condition.PASS
        spatial, reduced = extents(stage, spatial=True), extents(stage, spatial=False)
        cores = policy.task.hardware.num_cores
        if needs_multi_level_tiling(state, stage_id):
            is_met = spatial <= min(reduced, PARALLEL_PER_CORE * cores)
        else:
            is_met = reduced > max(1, cores)
        return Condition.APPLY if is_met else Condition.PASS

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return two states; neither stage is changed further."""
        loops = state.stages[stage_id].iters
        reductions = [loop_id for loop_id, loop in enumerate(loops) if loop.kind is IterKind.REDUCTION]
        count, begin = len(loops) - len(reductions), reductions[0]
        if len(reductions) > 1:
            state = state.fuse(stage_id, reductions)
        state = state.split(stage_id, begin, [1])
        outer = state.rfactor(stage_id, begin, count)
        inner = state.rfactor(stage_id, begin + 1, count)
        order = [loop_id for loop_id in range(len(inner.stages[stage_id].iters)) if loop_id != count]
        inner = inner.reorder(stage_id, [*order, count])
        return (outer, stage_id - 1), (inner, stage_id - 1)
