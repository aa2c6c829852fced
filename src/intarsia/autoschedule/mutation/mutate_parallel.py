"""Mutation of the number of loops that are fused to one parallel loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from intarsia.autoschedule.population.replay import replay_program
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
        """Return the weight of parallel mutations."""
        return options.parallel_weight

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, _options: SpaceOptions
    ) -> LoopState | None:
        """Return the replayed state; None if no loop qualifies, or later steps forbid the drawn count."""
        steps = state.transform_steps
        indices = [index for index, step in enumerate(steps) if _is_outermost_parallel(step)]
        if not indices:
            return None
        index = rng.choice(indices)
        stage_id, fused, begin = steps[index].stage_id, 1, index
        before = steps[index - 1] if index else None
        if isinstance(before, FuseStep) and before.stage_id == stage_id and before.fused_ids[:1] == (0,):
            fused, begin = len(before.fused_ids), index - 1
        start = replay_program(task.dag, steps[:begin])
        most = 0 if start is None else _fusible(start, stage_id)
        others = [count for count in range(1, most + 1) if count != fused]
        if not others:
            return None
        count = rng.choice(others)
        # Fusing `count` instead of `fused` loops shifts the numbers of all later loops of the stage by the
        # difference.
        rest = _renumber(steps[index + 1 :], stage_id, fused - count, is_longer=begin == index)
        if rest is None:
            return None
        fuse = FuseStep(stage_id, tuple(range(count)))
        return replay_program(task.dag, [*steps[:begin], fuse, steps[index], *rest])


def _is_outermost_parallel(step: TransformStep) -> bool:
    if not isinstance(step, AnnotationStep):
        return False
    return step.iter_id == 0 and step.annotation is IteratorAnnotation.PARALLEL


def _fusible(state: LoopState, stage_id: int) -> int:
    """Return how many outer loops can be fused: only the last of them may have stages attached."""
    count = 0
    for loop_id, loop in enumerate(state.stages[stage_id].iters):
        if loop.kind is not IterKind.SPATIAL or loop.annotation is not IteratorAnnotation.NONE:
            break
        count += 1
        if (stage_id, loop_id) in state.attach_map.attached:
            break
    return count


def _renumber(
    steps: Sequence[TransformStep], stage_id: int, shift: int, *, is_longer: bool
) -> list[TransformStep] | None:
    """Renumber later steps for the loops behind the parallel one; None where that is impossible.

    Args:
        steps: Steps after the parallel annotation.
        stage_id: Stage of the parallel loop.
        shift: Number that is added to loop numbers.
        is_longer: Whether the history gets one more step, which would invalidate the step numbers of splits
            to follow.
    """
    renumbered: list[TransformStep] = []
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
        renumbered.append(moved)
    return renumbered


def _behind(step: TransformStep, shift: int) -> TransformStep | None:
    """Return a step on loops behind the parallel one, or on the outermost loop; None for any other step."""
    match step:
        case AnnotationStep() | PragmaStep():
            if step.iter_id == 0:
                return step
            return replace(step, iter_id=step.iter_id + shift) if step.iter_id + shift > 0 else None
        case FuseStep(fused_ids=(first, *_)) if first > 0 and first + shift > 0:
            return replace(step, fused_ids=tuple(loop_id + shift for loop_id in step.fused_ids))
        case _:
            return None
