"""Sketch rule for GPUs: threads of a block fetch what they read into shared memory together."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.gpu.bound_loops import with_first_loops_fused
from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.autoschedule.sketch.stage_facts import analyzer_of, is_tiled, needs_multi_level_tiling
from intarsia.autoschedule.sketch.tile_splits import spatial_tile_splits
from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Load
from intarsia.native.gpu.schedule_stages import THREAD_AXIS
from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp, ExternOp, IterKind

_THREAD_LEVEL = 1
"""Index of the length of the threads among the lengths of a split into tiles."""


@dataclass(frozen=True, slots=True)
class AddSharedRead:
    """Let a tiled stage read a copy in shared memory, a step of its reduction at a time.

    It is AddCacheRead of TVM. As many threads as the tiles have fetch the copy together, each of them a few
    neighbours at once; how many stays open. The copied stage is next, so that it can be inlined into the
    copy.

    Stage:
        B
    Steps:
        ["CHW", 3, "local"]
        ["SP", 3, 0, 64, [null, null, null, null], 1]
        ["SP", 3, 5, 64, [null, null, null, null], 1]
        ["SP", 3, 10, 256, [null, null], 1]
        ["RE", 3, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]]
        ["FSP", 4, 0, 1, 3]
        ["FSP", 4, 4, 2, 3]
        ["RE", 4, [0, 4, 1, 5, 2, 6, 3, 7]]
        ["FU", 4, [0, 1]]
        ["AN", 4, 0, 5]
        ["FU", 4, [1, 2]]
        ["AN", 4, 1, 4]
        ["FU", 4, [2, 3]]
        ["AN", 4, 2, 6]
        ["CA", 3, 4, 2]
        ["AN", 4, 3, 1]
        ["AN", 4, 4, 1]
        ["AN", 3, 0, 1]
        ["AN", 3, 1, 1]
        ["AN", 3, 2, 1]
        ["AN", 3, 3, 1]
        ["AN", 3, 4, 1]
        ["AN", 3, 5, 1]
        ["AN", 3, 8, 1]
        ["AN", 3, 9, 1]
        ["AN", 3, 11, 1]
        ["AN", 3, 12, 1]
    Before:
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
                            for ax0@ax1@.0.0 (None)
                              threadIdx.x ax0@ax1@.0.1 (None)
                                vectorize ax0@ax1@.1 (None)
                                  B.shared = ...
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

    name: str = "add_shared_read"

    def meets(self, _context: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply where a tiled stage with a reduction reads the stage, at indices that are no data."""
        is_met = _tiled_reader(state, stage_id) is not None
        return Condition.APPLY_AND_SKIP_REST if is_met else Condition.PASS

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one state; the same stage is next."""
        reader = _tiled_reader(state, stage_id)
        assert reader is not None, "the rule applies"
        state = state.cache_read(stage_id, "shared", [reader])
        copy, reader = stage_id + 1, reader + 1
        loop_id = _end_of_outer_reduction(state, reader)
        assert loop_id is not None, "the reader reduces"
        splits = spatial_tile_splits(state, reader)
        state = state.compute_at(copy, reader, loop_id)
        state = with_first_loops_fused(state, copy, 0, len(state.stages[copy].iters))
        state = state.split(copy, 0, [None]).vectorize(copy, 1)
        state = state.follow_fused_split(copy, 0, splits, _THREAD_LEVEL, True).bind(copy, 1, THREAD_AXIS)
        return ((state, stage_id),)


def _tiled_reader(state: LoopState, stage_id: int) -> int | None:
    """Return the first tiled stage with a reduction that reads a stage with axes; None if there is none."""
    op, dag = state.stages[stage_id].op, state.current_dag
    if isinstance(op, ExternOp) or len(op.buffers) != 1 or not op.buffers[0].shape:
        return None
    for reading in dag.readers[op]:
        reader = dag.op_ids[reading]
        is_product = is_tiled(state.stages[reader]) and needs_multi_level_tiling(state, reader)
        if not is_product or _end_of_outer_reduction(state, reader) is None:
            continue
        reads = analyzer_of(dag).read_from[reading][op]
        parts = (part for indices in reads for index in indices for part, _ in scalar_post_order(index))
        if not any(isinstance(part, Load) for part in parts) and spatial_tile_splits(state, reader):
            return reader
    return None


def _end_of_outer_reduction(state: LoopState, stage_id: int) -> int | None:
    """Return the number of the innermost loop of the outermost tiles of a reduction, None without any."""
    stage = state.stages[stage_id]
    if not isinstance(stage.op, ComputeOp):
        return None
    loops = [
        loop_id
        for loop_id, loop in enumerate(stage.iters)
        if loop.kind is IterKind.REDUCTION and loop.name.endswith(".0")
    ]
    return loops[-1] if loops else None
