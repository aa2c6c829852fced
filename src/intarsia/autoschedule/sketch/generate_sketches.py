"""Generation of the sketches of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from intarsia.autoschedule.sketch.add_cache_write import AddCacheWrite
from intarsia.autoschedule.sketch.add_rfactor import AddRfactor
from intarsia.autoschedule.sketch.always_inline import AlwaysInline
from intarsia.autoschedule.sketch.gpu import GPU_RULES, GPU_STRUCTURE
from intarsia.autoschedule.sketch.gpu.remaining_stages import with_remaining_stages_bound
from intarsia.autoschedule.sketch.multi_level_tiling import MultiLevelTiling
from intarsia.autoschedule.sketch.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from intarsia.autoschedule.sketch.simplify_const_tensor import SimplifyComputeWithConstTensor
from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext, SketchRule
from intarsia.autoschedule.sketch.skip_stage import SkipStage
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import RfactorStep, SplitStep

CPU_RULES: Final[tuple[SketchRule, ...]] = (
    AlwaysInline(),
    SimplifyComputeWithConstTensor(),
    AddRfactor(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    SkipStage(),
)
"""The rules for CPUs, in the order in which they are tried."""
CPU_STRUCTURE: Final = "SSRSRS"
"""Levels of tiles on CPUs."""


def generate_sketches(
    task: SearchTask,
    rules: Sequence[SketchRule] | None = None,
    *,
    custom: Sequence[SketchRule] = (),
    structure: str | None = None,
) -> tuple[LoopState, ...]:
    """Generate the sketches of a task: states with loop structure and open lengths (Ansor, section 4.1).

    Stages are visited from the last to the first, breadth first. The history of a sketch has None for
    every length that is drawn later, also where its loops show the 1 that rfactor needs.

    Args:
        task: Search task.
        rules: Rules in order; None for those of the task's hardware, CPU_RULES or GPU_RULES.
        custom: Rules that are tried before the others.
        structure: Levels of tiles, as in SketchContext; None for those of the task's hardware.
    """
    is_gpu = task.hardware.is_gpu
    context = SketchContext(task, structure or (GPU_STRUCTURE if is_gpu else CPU_STRUCTURE))
    usual = GPU_RULES if is_gpu else CPU_RULES
    tried = (*custom, *(usual if rules is None else rules))
    first = LoopState.initial(task.dag)
    level: list[tuple[LoopState, int]] = [(first, len(first.stages) - 1)]
    finished: list[LoopState] = []
    while level:
        following: list[tuple[LoopState, int]] = []
        for state, stage_id in level:
            if stage_id < 0:
                finished.append(state)
            else:
                following += _apply_rules(context, tried, state, stage_id)
        level = following
    sketches = map(_with_open_factors, map(with_remaining_stages_bound, finished) if is_gpu else finished)
    return tuple({sketch.text: sketch for sketch in sketches}.values()) if is_gpu else tuple(sketches)


def _apply_rules(
    context: SketchContext, rules: Sequence[SketchRule], state: LoopState, stage_id: int
) -> Children:
    children: Children = ()
    for rule in rules:
        condition = rule.meets(context, state, stage_id)
        if condition is not Condition.PASS:
            children += rule.apply(context, state, stage_id)
        if condition is Condition.APPLY_AND_SKIP_REST:
            break
    return children


def _with_open_factors(state: LoopState) -> LoopState:
    """Return a state with None for the length of each split directly before an rfactor of its stage."""
    steps = list(state.transform_steps)
    for index, step in enumerate(steps):
        before = steps[index - 1] if index else None
        if (
            isinstance(step, RfactorStep)
            and isinstance(before, SplitStep)
            and before.stage_id == step.stage_id
        ):
            steps[index - 1] = replace(before, lengths=(None,) * len(before.lengths))
    is_changed = tuple(steps) != state.transform_steps
    return state.with_fields(transform_steps=tuple(steps), concrete=False) if is_changed else state
