"""Vectorised innermost loops."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.autoschedule.sketch.stage_facts import is_placed, is_tiled
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.te import IterKind


@dataclass(frozen=True, slots=True)
class Vectorization:
    """Fuse a random number of innermost spatial loops of each stage, and vectorise them.

    The number is drawn among all that fit (Ansor's first implementation never takes all of several); in a
    tile it is one, because two tile loops are not contiguous in memory.
    """

    name: str = "vectorization"

    def apply(
        self, _task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """Return the state with vectorised loops."""
        for stage_id, stage in enumerate(state.stages):
            most = _fusible(state, stage_id, options.max_vectorize_size) if is_placed(stage) else 0
            if most == 0:
                continue
            begin = len(stage.iters) - rng.randint(1, most)
            if begin < len(stage.iters) - 1:
                state = state.fuse(stage_id, range(begin, len(stage.iters)))
            state = state.vectorize(stage_id, begin)
        return state


def _fusible(state: LoopState, stage_id: int, most_elements: int) -> int:
    """Return how many innermost loops can be fused to one vectorised loop."""
    stage, elements, count = state.stages[stage_id], 1, 0
    for loop_id in reversed(range(len(stage.iters))):
        loop = stage.iters[loop_id]
        is_end = loop.kind is not IterKind.SPATIAL or loop.annotation is not IteratorAnnotation.NONE
        if is_end or (stage_id, loop_id) in state.attach_map.attached or (is_tiled(stage) and count):
            break
        elements *= most_elements + 1 if loop.extent is None else loop.extent
        if elements > most_elements:
            break
        count += 1
    return count
