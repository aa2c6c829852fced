"""From the loops of a reduction to the axes of its partial results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.native.dag.loop_name import loop_name
from intarsia.native.dag.rfactor import Factoring
from intarsia.native.loop_state.axis_values import axis_values
from intarsia.native.loop_state.iterator import Iterator, IteratorAnnotation
from intarsia.native.loop_state.stage import ComputeAt, Stage
from intarsia.native.loop_state.steps.lookup import loop_of, movable_stage, refuse_inside
from intarsia.native.te.iter_var import IterKind, IterVar
from intarsia.native.te.tensor import ComputeOp
from intarsia.support.free_names import NameSupply

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.steps.step import TransformStep


def factoring_of(step: TransformStep, state: LoopPreview, iter_id: int, place: int) -> Factoring:
    """What the stage of partial results iterates over.

    Args:
        step: The step; its stage is factored.
        state: The state before the step.
        iter_id: The reduction loop that becomes an axis.
        place: The place of that axis among those of the new stage.

    Raises:
        IllegalStepError: The stage is no reduction, is inlined, or has spatial loops that were changed; the
            loop is no reduction, or its extent is not known.
    """
    stage = movable_stage(step, state)
    factor = loop_of(step, state, iter_id)
    op = stage.op
    assert isinstance(op, ComputeOp), "checked by movable_stage"
    if factor.kind is not IterKind.REDUCTION:
        raise state.refusal(step, f"loop {factor.name} is no reduction")
    if stage.compute_at is ComputeAt.INLINED:
        raise state.refusal(step, "the stage is inlined; expected one with a buffer")
    _check_spatial_loops(step, state, stage)
    refuse_inside(step, state)
    if not 0 <= place <= len(op.axes):
        raise state.refusal(step, f"found place {place}; expected 0 to {len(op.axes)}")
    return _factoring(step, state, stage, op, factor, place)


def _check_spatial_loops(step: TransformStep, state: LoopPreview, stage: Stage) -> None:
    op = stage.op
    assert isinstance(op, ComputeOp), "checked by movable_stage"
    names = [loop_name(axis.name) for axis in op.axes]
    if [loop.name for loop in stage.iters if loop.kind is not IterKind.REDUCTION] != names:
        raise state.refusal(
            step, "earlier steps changed the stage's spatial loops; expected reduction loops only"
        )
    if any(loop.annotation is not IteratorAnnotation.NONE for loop in stage.iters):
        raise state.refusal(step, "the stage's loops are annotated; expected annotations after this step")


def _factoring(
    step: TransformStep, state: LoopPreview, stage: Stage, op: ComputeOp, factor: Iterator, place: int
) -> Factoring:
    touched = _touched(stage, factor.name)
    whole = [axis for axis in op.reduce_axes if loop_name(axis.name) not in touched]
    rest = [
        loop
        for loop in stage.iters
        if loop.kind is IterKind.REDUCTION and loop.name in touched and loop is not factor
    ]
    supply = NameSupply(axis.name for axis in (*op.axes, *whole))
    names = {loop.name: supply.fresh(loop_name(loop.name)) for loop in (factor, *rest)}
    if any(loop.extent is None for loop in (factor, *rest)):
        raise state.refusal(
            step, "the extents of the reduction loops are not known; expected all split lengths"
        )
    found = axis_values(stage, names)
    if any(loop_name(axis.name) not in found.values for axis in op.reduce_axes):
        raise state.refusal(step, "the extents of loops that were fused or split are not known")
    return Factoring(
        factor=IterVar(names[factor.name], factor.extent or 0),
        place=place,
        reduce_axes=(
            *whole,
            *(IterVar(names[loop.name], loop.extent or 0, IterKind.REDUCTION) for loop in rest),
        ),
        values={
            axis.name: found.values[loop_name(axis.name)] for axis in op.reduce_axes if axis not in whole
        },
        conditions=found.conditions_on(touched),
    )


def _touched(stage: Stage, factor: str) -> frozenset[str]:
    """The names of all loops, past and present, that share an axis with a loop."""
    groups: dict[str, frozenset[str]] = {}
    for relation in stage.relations:
        joined = frozenset().union(*(groups.get(each, frozenset({each})) for each in relation.names))
        groups |= dict.fromkeys(joined, joined)
    return groups.get(factor, frozenset({factor}))
