"""Predicates and facts about the stages of a state, for rules."""

from __future__ import annotations

import math
from functools import lru_cache

from intarsia.native.dag import AccessAnalyzer, ComputeDAG, loop_name
from intarsia.native.loop_state import ComputeAt, LoopState, Stage, StageKind
from intarsia.native.loop_state.relatives import consumers
from intarsia.native.loop_state.stage import axes_of
from intarsia.native.loop_state.steps import CacheWriteStep
from intarsia.native.te import ComputeOp, ExternOp, IterKind


@lru_cache(maxsize=128)
def analyzer_of(dag: ComputeDAG) -> AccessAnalyzer:
    """Return the access analysis of a DAG, cached for the most recent DAGs."""
    return AccessAnalyzer(dag)


def needs_multi_level_tiling(state: LoopState, stage_id: int) -> bool:
    """Whether tiling a stage pays off."""
    return analyzer_of(state.current_dag).needs_multi_level_tiling(state.stages[stage_id].op)


def is_tiled(stage: Stage) -> bool:
    """Whether a stage has another number of loops than declared."""
    return len(stage.iters) != len(axes_of(stage.op))


def is_placed(stage: Stage) -> bool:
    """Whether a stage has loops: it is neither a placeholder nor inlined."""
    return stage.kind is StageKind.COMPUTE and stage.compute_at is not ComputeAt.INLINED


def has_reduction(stage: Stage) -> bool:
    """Whether a loop of a stage reduces."""
    return any(loop.kind is not IterKind.SPATIAL for loop in stage.iters)


def may_be_inlined(state: LoopState, stage_id: int) -> bool:
    """Whether a stage can be inlined into its readers, at whatever cost: it is element-wise.

    Readers with their own statements (ExternOp) need a materialised tensor.
    """
    stage, dag = state.stages[stage_id], state.current_dag
    if not isinstance(stage.op, ComputeOp) or has_reduction(stage) or dag.is_output(stage.op):
        return False
    readers = consumers(state, stage_id)
    has_inside = any(target == stage_id for target, _ in state.attach_map.positions.values())
    return not has_inside and not any(isinstance(state.stages[reader].op, ExternOp) for reader in readers)


def extents(stage: Stage, *, spatial: bool) -> int:
    """Return the product of the extents of a stage's spatial loops, or of all others."""
    loops = [loop for loop in stage.iters if (loop.kind is IterKind.SPATIAL) is spatial]
    return math.prod(loop.extent or 0 for loop in loops)


def listed_axes(stage: Stage, attr: str) -> frozenset[str]:
    """Return the loop names of the axes that an attribute of a stage's operation lists."""
    if not isinstance(stage.op, ComputeOp):
        return frozenset()
    listed = stage.op.attrs.get(attr, ())
    names = listed if isinstance(listed, tuple) else (listed,)
    return frozenset(loop_name(name) for name in names if isinstance(name, str))


def is_cache_stage(state: LoopState, stage_id: int) -> bool:
    """Whether a stage was created by cache_write: the next stage copies its result."""
    for step in reversed(state.transform_steps):
        if not step.adds_stage:
            continue
        if isinstance(step, CacheWriteStep) and step.stage_id == stage_id:
            return True
        # Walking the history backwards: each added stage had shifted the numbers behind it by one.
        stage_id -= stage_id > step.stage_id
    return False


def elementwise_consumer(state: LoopState, stage_id: int) -> int | None:
    """Return the only reader of a stage, if it is element-wise and can follow the stage's tiles.

    A tiled reader is excluded (Ansor's first implementation stops with an error there). A
    stage that is an output is not moved into another one.
    """
    stage, readers = state.stages[stage_id], consumers(state, stage_id)
    if len(readers) != 1 or state.current_dag.is_output(stage.op):
        return None
    (target_id,) = readers
    target = state.stages[target_id]
    if not analyzer_of(state.current_dag).elementwise_match(stage.op, target.op):
        return None
    both_reduce = has_reduction(stage) and has_reduction(target)
    if both_reduce or has_reduction(target) or target.relations or target.op.name.endswith(".shared"):
        return None
    return target_id
