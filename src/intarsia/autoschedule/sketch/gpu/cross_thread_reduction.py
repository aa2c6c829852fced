"""Sketch rule for GPUs: the threads of a block share a reduction."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.gpu.bound_loops import (
    is_still_whole,
    with_blocks_and_threads,
    with_first_loops_fused,
    with_loops_bound,
)
from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import (
    elementwise_consumer,
    extents,
    is_cache_stage,
    needs_multi_level_tiling,
)
from intarsia.native.gpu.schedule_stages import LONG, THREAD_AXIS
from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp

_RESULTS_OF_MULTIPROCESSOR = 64
"""With more results than this on each multiprocessor, a tiled stage has enough threads without the rule."""


@dataclass(frozen=True, slots=True)
class CrossThreadReduction:
    """Give each thread a part of a reduction; one thread adds up the parts of a result.

    It is Ansor's rule for GPUs. TVM binds the reduced loop itself; here partial results have a stage of
    their own in shared memory. How many threads share a result, and how many results a block has, stays
    open. An element-wise reader is computed from the sum.

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
        blockIdx.x i@j@.0 (None)
          threadIdx.x i@j@k_1@ (None)
            for i_c (None)
              for j_c (None)
                for k_1_c (None)
                  for k_0 (None)
                    C.rf.local = ...
            C.rf = ...
          threadIdx.x i@j@.1 (None)
            for i_c (None)
              for j_c (None)
                for k_1_v (None)
                  C.local = ...
            C = ...
    """

    name: str = "cross_thread_reduction"

    def meets(self, context: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply to long reductions, where tiles would leave too few threads if the stage can have tiles."""
        stage = state.stages[stage_id]
        if not isinstance(stage.op, ComputeOp) or stage.op.combiner is None:
            return Condition.PASS
        is_new = is_still_whole(stage) and not is_cache_stage(state, stage_id)
        if not is_new or len(stage.op.buffers) != 1 or not stage.op.axes or stage.op.name.endswith(".rf"):
            return Condition.PASS
        results = extents(stage, spatial=True)
        enough = _RESULTS_OF_MULTIPROCESSOR * context.task.hardware.num_cores
        is_met = results and extents(stage, spatial=False) >= LONG
        if needs_multi_level_tiling(state, stage_id):
            is_met = is_met and results <= enough
        return Condition.APPLY if is_met else Condition.PASS

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state, in which neither stage is changed further."""
        op = state.stages[stage_id].op
        assert isinstance(op, ComputeOp), "the rule applies"
        rank = len(op.axes)
        state = with_first_loops_fused(state, stage_id, rank, len(op.reduce_axes))
        state = state.split(stage_id, rank, [1]).rfactor(stage_id, rank + 1, rank)
        partial, total = stage_id, stage_id + 1
        target = elementwise_consumer(state, total)
        if target is None:
            state, target = state.cache_write(total, "local"), total + 1
        state = with_blocks_and_threads(state, target, rank).compute_at(total, target, 1)
        state = state.cache_write(partial, "local")
        parts, partial, target = partial, partial + 1, target + 1
        state = state.compute_at(partial, target, 0)
        state = with_loops_bound(state, partial, 0, rank + 1, THREAD_AXIS)
        return ((state.compute_at(parts, partial, 0), stage_id - 1),)
