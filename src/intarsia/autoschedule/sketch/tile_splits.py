"""The steps of a history that split the loops of a stage."""

from __future__ import annotations

from intarsia.native.dag import loop_name
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.relation import SplitRelation
from intarsia.native.loop_state.steps import CacheReadStep, SplitStep
from intarsia.native.te import ComputeOp


def spatial_tile_splits(state: LoopState, stage_id: int) -> tuple[int, ...]:
    """Return the numbers of the steps that split the spatial axes of a stage, in the order of the steps."""
    stage = state.stages[stage_id]
    if not isinstance(stage.op, ComputeOp):
        return ()
    spatial = {loop_name(axis.name) for axis in stage.op.axes}
    parents = [relation.parent for relation in stage.relations if isinstance(relation, SplitRelation)]
    pairs = zip(_split_steps(state, stage_id), parents, strict=True)
    return tuple(number for number, parent in pairs if parent in spatial)


def _split_steps(state: LoopState, stage_id: int) -> list[int]:
    """Return the numbers of all steps that split loops of a stage since it came into being."""
    numbers: list[int] = []
    for number in reversed(range(len(state.transform_steps))):
        step = state.transform_steps[number]
        if step.adds_stage:
            # A cache read adds the stage behind its own one, other steps add it in front of it.
            added = step.stage_id + isinstance(step, CacheReadStep)
            if stage_id == added:
                break
            stage_id -= stage_id > added
        elif isinstance(step, SplitStep) and step.stage_id == stage_id:
            numbers.insert(0, number)
    return numbers
