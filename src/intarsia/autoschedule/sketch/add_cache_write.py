"""Sketch rule: compute results in a local cache, and copy them out."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import (
    elementwise_consumer,
    is_cache_stage,
    needs_multi_level_tiling,
)
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class AddCacheWrite:
    """Add a cache write to a tileable stage without a reader to fuse with (Ansor, rule 5).

    The new stage takes the number and comes next, so that `MultiLevelTilingWithFusion` fuses the two.

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
        for i_c (0,8)
          for j_c (0,8)
            for k (0,64)
              C.local = ...
        for i (0,8)
          for j (0,8)
            C = ...
    """

    name: str = "add_cache_write"

    def meets(self, _policy: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply where tiling pays off and no element-wise reader exists."""
        is_met = (
            needs_multi_level_tiling(state, stage_id)
            and elementwise_consumer(state, stage_id) is None
            and not is_cache_stage(state, stage_id)
        )
        return Condition.APPLY if is_met else Condition.PASS

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state; the same stage number, now the cache, is next."""
        return ((state.cache_write(stage_id, "local"), stage_id),)
