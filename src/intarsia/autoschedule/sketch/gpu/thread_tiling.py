"""Sketch rule for GPUs: multi-level tiling over blocks, virtual threads and threads."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.gpu.bound_loops import is_still_whole, with_levels_bound
from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import elementwise_consumer, needs_multi_level_tiling
from intarsia.autoschedule.sketch.tile_loops import follow_tiling, tile_loops
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.te import IterKind

BOUND_LEVELS = 3
"""Number of outer tile levels: those of blocks, virtual threads, and threads."""


@dataclass(frozen=True, slots=True)
class ThreadTiling:
    """Tile a stage, let its element-wise reader follow, and compute it in the reader's threads.

    It is Ansor's rule 4 for GPUs. The outer three levels of spatial tiles are blocks, virtual threads and
    threads. Inside of a thread the results are in registers.

    Stage:
        C.local
    Steps:
        ["CHW", 3, "local"]
    Before:
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
    After:
        Placeholder: A, B
        for i (0,64)
          for j (0,256)
            S = ...
        blockIdx.x i.0@j.0@ (None)
          vthread i.1@j.1@ (None)
            threadIdx.x i.2@j.2@ (None)
              unroll i_c.0 (None)
                unroll j_c.0 (None)
                  unroll i_c.1 (None)
                    unroll j_c.1 (None)
                      unroll i_c.2 (None)
                        unroll j_c.2 (None)
                          for k.0 (None)
                            for k.1 (None)
                              unroll i_c.3 (None)
                                unroll j_c.3 (None)
                                  for k.2 (None)
                                    unroll i_c.4 (None)
                                      unroll j_c.4 (None)
                                        C.local = ...
              unroll i.3 (None)
                unroll j.3 (None)
                  C = ...
    """

    name: str = "thread_tiling"

    def meets(self, context: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply where tiling pays off, and the only reader is element-wise: the copy of a cache, usually."""
        stage = state.stages[stage_id]
        is_met = (
            context.structure.startswith("S" * BOUND_LEVELS)
            and needs_multi_level_tiling(state, stage_id)
            and is_still_whole(stage)
            and elementwise_consumer(state, stage_id) is not None
            and any(loop.kind is IterKind.SPATIAL for loop in stage.iters)
        )
        return Condition.APPLY_AND_SKIP_REST if is_met else Condition.PASS

    def apply(self, context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state."""
        target = elementwise_consumer(state, stage_id)
        assert target is not None, "the rule applies"
        tiling = tile_loops(state, stage_id, context.structure)
        count = len(tiling.split_step_ids)
        if not count:
            return ()
        after = follow_tiling(tiling.state, target, tiling.split_step_ids, BOUND_LEVELS)
        after = with_levels_bound(after, target, count).compute_at(stage_id, target, BOUND_LEVELS - 1)
        # Registers have no addresses: loops over what a thread keeps there are written out.
        for stage, first in ((target, BOUND_LEVELS), (stage_id, 0)):
            after = _with_tiles_unrolled(after, stage, first)
        return ((after, stage_id - 1),)


def _with_tiles_unrolled(state: LoopState, stage_id: int, first: int) -> LoopState:
    """Unroll the spatial loops of a thread, from loop number `first` on."""
    for loop_id, loop in enumerate(state.stages[stage_id].iters):
        is_of_thread = loop_id >= first and loop.kind is IterKind.SPATIAL
        if is_of_thread and loop.annotation is IteratorAnnotation.NONE:
            state = state.unroll(stage_id, loop_id)
    return state
