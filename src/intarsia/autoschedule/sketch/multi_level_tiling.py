"""Sketch rule: multi-level tiling for caches and registers."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import needs_multi_level_tiling
from intarsia.autoschedule.sketch.tile_loops import tile_loops
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class MultiLevelTiling:
    """Tile a stage with much data reuse (Ansor, rule 3).

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
        for i.0 (None)
          for j.0 (None)
            for i.1 (None)
              for j.1 (None)
                for k.0 (None)
                  for i.2 (None)
                    for j.2 (None)
                      for k.1 (None)
                        for i.3 (None)
                          for j.3 (None)
                            C = ...
    """

    name: str = "multi_level_tiling"

    def meets(self, _policy: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply where tiling pays off."""
        is_met = needs_multi_level_tiling(state, stage_id)
        return Condition.APPLY_AND_SKIP_REST if is_met else Condition.PASS

    def apply(self, context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state."""
        return ((tile_loops(state, stage_id, context.structure).state, stage_id - 1),)
