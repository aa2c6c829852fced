"""Another number of loops that are one parallel loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from intarsia.autoschedule.population.completed import completed
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.loop_state.steps import (
    AnnotationStep,
    ComputeAtStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    PragmaStep,
    TransformStep,
)
from intarsia.native.te import IterKind


@dataclass(frozen=True, slots=True)
class MutateParallel:
    """Fuse more or fewer outer loops of a stage before they are parallel.

    A single parallel loop, which the field's first implementation leaves alone, may be fused with others.
    """

    name: str = "mutate_parallel"

    def weight(self, options: SpaceOptions) -> float:
        """Least of all."""
        return options.parallel_weight

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, _options: SpaceOptions
    ) -> LoopState | None:
        """A state made again; None if no loop can be so, or later steps do not allow what was drawn."""
        steps = state.transform_steps
        places = [place for place, step in enumerate(steps) if _is_outermost_parallel(step)]
        if not places:
            return None
        place = rng.choice(places)
        stage_id, fused, begin = steps[place].stage_id, 1, place
        before = steps[place - 1] if place else None
        if isinstance(before, FuseStep) and before.stage_id == stage_id and before.fused_ids[:1] == (0,):
            fused, begin = len(before.fused_ids), place - 1
        start = completed(task.dag, steps[:begin])
        most = 0 if start is None else _fusible(start, stage_id)
        others = [count for count in range(1, most + 1) if count != fused]
        if not others:
            return None
        count = rng.choice(others)
        rest = _shifted(steps[place + 1 :], stage_id, fused - count, is_longer=begin == place)
        if rest is None:
            return None
        fuse = FuseStep(stage_id, tuple(range(count)))
        return completed(task.dag, [*steps[:begin], fuse, steps[place], *rest])


def _is_outermost_parallel(step: TransformStep) -> bool:
    if not isinstance(step, AnnotationStep):
        return False
    return step.iter_id == 0 and step.annotation is IteratorAnnotation.PARALLEL


def _fusible(state: LoopState, stage_id: int) -> int:
    """How many outer loops may be one: the last of them may have stages inside."""
    count = 0
    for place, loop in enumerate(state.stages[stage_id].iters):
        if loop.kind is not IterKind.SPATIAL or loop.annotation is not IteratorAnnotation.NONE:
            break
        count += 1
        if (stage_id, place) in state.attach_map.attached:
            break
    return count


def _shifted(
    steps: Sequence[TransformStep], stage_id: int, shift: int, *, is_longer: bool
) -> list[TransformStep] | None:
    """Later steps for the loops behind the parallel one; None where they cannot be the same.

    Args:
        steps: Those after the parallel loop was made.
        stage_id: Of that loop.
        shift: What numbers of loops grow by.
        is_longer: Whether the history gets a step more, so that numbers of splits to follow are wrong.
    """
    found: list[TransformStep] = []
    for step in steps:
        is_following = isinstance(step, FollowSplitStep | FollowFusedSplitStep)
        if step.adds_stage or (is_longer and is_following):
            return None
        moved: TransformStep | None = step
        if step.stage_id == stage_id:
            moved = _behind(step, shift)
        elif isinstance(step, ComputeAtStep) and step.target_stage_id == stage_id:
            moved = None
        if moved is None:
            return None
        found.append(moved)
    return found


def _behind(step: TransformStep, shift: int) -> TransformStep | None:
    """A step on loops behind the parallel one, or on the outermost loop, or None if it is another one."""
    match step:
        case AnnotationStep() | PragmaStep():
            if step.iter_id == 0:
                return step
            return replace(step, iter_id=step.iter_id + shift) if step.iter_id + shift > 0 else None
        case FuseStep(fused_ids=(first, *_)) if first > 0 and first + shift > 0:
            return replace(step, fused_ids=tuple(each + shift for each in step.fused_ids))
        case _:
            return None
