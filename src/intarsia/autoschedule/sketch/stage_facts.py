"""What rules ask about the stages of a state."""

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
    """The facts about a DAG, kept for the DAGs that were asked for last."""
    return AccessAnalyzer(dag)


def needs_multi_level_tiling(state: LoopState, stage_id: int) -> bool:
    """Whether tiles of a stage pay."""
    return analyzer_of(state.current_dag).needs_multi_level_tiling(state.stages[stage_id].op)


def is_tiled(stage: Stage) -> bool:
    """Whether a stage has other loops than declared, by number."""
    return len(stage.iters) != len(axes_of(stage.op))


def is_placed(stage: Stage) -> bool:
    """Whether a stage has loops of its own somewhere: it is neither given nor inlined."""
    return stage.kind is StageKind.COMPUTE and stage.compute_at is not ComputeAt.INLINED


def has_reduction(stage: Stage) -> bool:
    """Whether a loop of a stage reduces."""
    return any(loop.kind is not IterKind.SPATIAL for loop in stage.iters)


def may_be_inlined(state: LoopState, stage_id: int) -> bool:
    """Whether a stage can stand in what reads it, at whatever cost: it computes element by element.

    Statements of their own (ExternOp) read tensors, so that what they read stays one.
    """
    stage, dag = state.stages[stage_id], state.current_dag
    if not isinstance(stage.op, ComputeOp) or has_reduction(stage) or dag.is_output(stage.op):
        return False
    readers = consumers(state, stage_id)
    has_inside = any(target == stage_id for target, _ in state.attach_map.places.values())
    return not has_inside and not any(isinstance(state.stages[each].op, ExternOp) for each in readers)


def extents(stage: Stage, *, spatial: bool) -> int:
    """The product of the extents of a stage's spatial loops, or of all others."""
    loops = [loop for loop in stage.iters if (loop.kind is IterKind.SPATIAL) is spatial]
    return math.prod(loop.extent or 0 for loop in loops)


def listed_axes(stage: Stage, attr: str) -> frozenset[str]:
    """The names of the loops of the axes that an attribute of a stage's operation lists."""
    if not isinstance(stage.op, ComputeOp):
        return frozenset()
    listed = stage.op.attrs.get(attr, ())
    names = listed if isinstance(listed, tuple) else (listed,)
    return frozenset(loop_name(name) for name in names if isinstance(name, str))


def is_cache_stage(state: LoopState, stage_id: int) -> bool:
    """Whether a stage was made by cache_write: what it computes is copied by the stage behind it."""
    for step in reversed(state.transform_steps):
        if not step.adds_stage:
            continue
        if isinstance(step, CacheWriteStep) and step.stage_id == stage_id:
            return True
        stage_id -= stage_id > step.stage_id
    return False


def elementwise_consumer(state: LoopState, stage_id: int) -> int | None:
    """The only stage that reads a stage, if it does so element by element and can follow its tiles.

    It is none that was tiled itself, a case where the field's first implementation stopped with an error. A
    stage that is a result is not moved into another one.
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
