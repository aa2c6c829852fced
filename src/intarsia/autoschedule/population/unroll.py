"""Unrolled loops and unroll pragmas."""

from __future__ import annotations

from collections.abc import Iterator as Iteration
from dataclasses import dataclass
from random import Random

from intarsia.autoschedule.sketch.stage_facts import has_reduction, is_placed, listed_axes
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import IteratorAnnotation, LoopState, Stage
from intarsia.native.loop_state.steps.pragma_step import AUTO_UNROLL
from intarsia.native.te.op_attrs import ALWAYS_UNROLL_INNER


@dataclass(frozen=True, slots=True)
class Unroll:
    """Unroll the loops that an operation lists, and draw a pragma for each stage with a reduction."""

    name: str = "unroll"

    def apply(
        self, _task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """Return the state with unrolled loops, and the pragma `auto_unroll_max_step` on outermost loops."""
        for stage_id, stage in enumerate(state.stages):
            if not is_placed(stage):
                continue
            for loop_id in _listed_inner(stage):
                state = state.annotate(stage_id, loop_id, IteratorAnnotation.UNROLL)
            if has_reduction(stage):
                state = state.pragma(stage_id, 0, f"{AUTO_UNROLL}${rng.choice(options.unroll_steps)}")
        return state


def _listed_inner(stage: Stage) -> Iteration[int]:
    """Yield the innermost-tile loops of axes listed as `auto_scheduler_always_unroll_inner`."""
    listed, seen = listed_axes(stage, ALWAYS_UNROLL_INNER), set[str]()
    for loop_id in reversed(range(len(stage.iters) if listed else 0)):
        loop = stage.iters[loop_id]
        axes = {name.partition(".")[0] for name in loop.name.split("@") if name}
        if axes <= seen:
            return
        seen |= axes
        if len(axes) == 1 and axes <= listed and loop.annotation is IteratorAnnotation.NONE:
            yield loop_id
