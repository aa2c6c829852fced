"""Sketch rule for GPUs: sum in registers, and copy the results out."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.add_cache_write import AddCacheWrite
from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class AddRegisterCache:
    """Add a cache write to every tileable stage without a reader to fuse with (Ansor, rule 5).

    `AddCacheWrite` keeps the stage without a cache as well; threads of a GPU never sum in memory.

    Stage:
        C
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
          for j (0,256)
            S = ...
        for i_c (0,64)
          for j_c (0,64)
            for k (0,256)
              C.local = ...
        for i (0,64)
          for j (0,64)
            C = ...
    """

    name: str = "add_register_cache"

    def meets(self, context: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply where `AddCacheWrite` does, to stages with a single result."""
        is_single = len(state.stages[stage_id].op.buffers) == 1
        is_met = is_single and AddCacheWrite().meets(context, state, stage_id) is not Condition.PASS
        return Condition.APPLY_AND_SKIP_REST if is_met else Condition.PASS

    def apply(self, context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state; the same stage number, now the cache, is next."""
        return AddCacheWrite().apply(context, state, stage_id)
