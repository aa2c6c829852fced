"""Parallel outer loops."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState, StageKind
from intarsia.native.te import IterKind


@dataclass(frozen=True, slots=True)
class Parallel:
    """Fuse the outer spatial loops of each root stage, and run them in parallel.

    Where these have one iteration in all, the stages inside and the loops behind are taken instead. (Ansor's
    first
    implementation then also makes the outer loop parallel, and discards such states.)
    """

    name: str = "parallel"

    def apply(
        self, task: SearchTask, state: LoopState, _rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """Return the state with parallel loops; nothing is random."""
        most = options.parallel_per_core * task.hardware.num_cores
        for stage_id, stage in enumerate(state.stages):
            if stage.kind is StageKind.COMPUTE and stage.compute_at is ComputeAt.ROOT:
                state = _make_parallel(state, stage_id, 0, most)
        return state


def _make_parallel(state: LoopState, stage_id: int, begin: int, most: int) -> LoopState:
    """Fuse the loops of a stage from `begin` on to one parallel loop of about `most` iterations."""
    loops, degree, end = state.stages[stage_id].iters, 1, begin
    while end < len(loops):
        loop = loops[end]
        if loop.kind is not IterKind.SPATIAL or loop.annotation is not IteratorAnnotation.NONE:
            break
        degree *= 1 if loop.extent is None else loop.extent
        end += 1
        if degree > most or (stage_id, end - 1) in state.attach_map.attached:
            break
    if degree > 1:
        if end - begin > 1:
            state = state.fuse(stage_id, range(begin, end))
        return state.parallel(stage_id, begin)
    inside = state.attach_map.attached.get((stage_id, end - 1), ()) if end > begin else ()
    for inner_id in inside:
        state = _make_parallel(state, inner_id, 0, most)
    return _make_parallel(state, stage_id, end, most) if inside else state
