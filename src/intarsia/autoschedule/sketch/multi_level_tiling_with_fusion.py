"""Sketch rule: multi-level tiling with a fused element-wise reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import (
    elementwise_consumer,
    is_cache_stage,
    needs_multi_level_tiling,
)
from intarsia.autoschedule.sketch.tile_loops import follow_tiling, tile_loops
from intarsia.native.loop_state import LoopState

FUSION_LEVELS: Final = (1, 2)
"""Numbers of tile levels of the reader inside which a stage is computed."""


@dataclass(frozen=True, slots=True)
class MultiLevelTilingWithFusion:
    """Tile a stage, let its element-wise reader follow, and compute it inside the reader's tiles (rule 4).

    Stage:
        C.local
    Steps:
        ["CHW", 3, "local"]
    Before:
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
    After:
        Placeholder: A, B
        for i (0,8)
          for j (0,64)
            S = ...
        for i.0 (None)
          for j.0 (None)
            for i_c.0 (None)
              for j_c.0 (None)
                for i_c.1 (None)
                  for j_c.1 (None)
                    for k.0 (None)
                      for i_c.2 (None)
                        for j_c.2 (None)
                          for k.1 (None)
                            for i_c.3 (None)
                              for j_c.3 (None)
                                C.local = ...
            for i.1 (None)
              for j.1 (None)
                C = ...
    After:
        Placeholder: A, B
        for i (0,8)
          for j (0,64)
            S = ...
        for i.0 (None)
          for j.0 (None)
            for i.1 (None)
              for j.1 (None)
                for i_c.0 (None)
                  for j_c.0 (None)
                    for i_c.1 (None)
                      for j_c.1 (None)
                        for k.0 (None)
                          for i_c.2 (None)
                            for j_c.2 (None)
                              for k.1 (None)
                                for i_c.3 (None)
                                  for j_c.3 (None)
                                    C.local = ...
                for i.2 (None)
                  for j.2 (None)
                    C = ...
    """

    name: str = "multi_level_tiling_with_fusion"

    def meets(self, _policy: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply where tiling pays off and the only reader is element-wise; a cache stage is always fused."""
        if not needs_multi_level_tiling(state, stage_id) or elementwise_consumer(state, stage_id) is None:
            return Condition.PASS
        is_cache = is_cache_stage(state, stage_id)
        return Condition.APPLY_AND_SKIP_REST if is_cache else Condition.APPLY

    def apply(self, context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return a state for each level of spatial tiles among the first two."""
        target = elementwise_consumer(state, stage_id)
        assert target is not None, "the rule applies"
        tiling = tile_loops(state, stage_id, context.structure)
        children = []
        for level in FUSION_LEVELS:
            loop_id = level * len(tiling.split_step_ids) - 1
            if context.structure[level - 1 : level] != "S" or loop_id < 0:
                continue
            after = follow_tiling(tiling.state, target, tiling.split_step_ids, level)
            children.append((after.compute_at(stage_id, target, loop_id), stage_id - 1))
        return tuple(children)
