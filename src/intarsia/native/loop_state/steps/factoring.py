"""Computation of the axes of partial results from the loops of a reduction."""

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


def factoring_of(step: TransformStep, state: LoopPreview, iter_id: int, position: int) -> Factoring:
    """Return the axes, values and conditions of the stage of partial results.

    Args:
        step: Step whose stage is factored.
        state: State before the step.
        iter_id: Number of the reduction loop that becomes an axis.
        position: Index of that axis among the axes of the new stage.

    Raises:
        IllegalStepError: The stage is no reduction, is inlined, or has changed spatial loops; the loop is no
            reduction, or its extent is unknown.
    """
    stage = movable_stage(step, state)
    factor = loop_of(step, state, iter_id)
    op = stage.op
    assert isinstance(op, ComputeOp), "checked by movable_stage"
    if factor.kind is not IterKind.REDUCTION:
        raise state.step_error(step, f"loop {factor.name} is no reduction")
    if stage.compute_at is ComputeAt.INLINED:
        raise state.step_error(step, "the stage is inlined; expected one with a buffer")
    _check_spatial_loops(step, state, stage)
    refuse_inside(step, state)
    if not 0 <= position <= len(op.axes):
        raise state.step_error(step, f"found place {position}; expected 0 to {len(op.axes)}")
    return _factoring(step, state, stage, op, factor, position)


def _check_spatial_loops(step: TransformStep, state: LoopPreview, stage: Stage) -> None:
    op = stage.op
    assert isinstance(op, ComputeOp), "checked by movable_stage"
    names = [loop_name(axis.name) for axis in op.axes]
    if [loop.name for loop in stage.iters if loop.kind is not IterKind.REDUCTION] != names:
        raise state.step_error(
            step, "earlier steps changed the stage's spatial loops; expected reduction loops only"
        )
    if any(loop.annotation is not IteratorAnnotation.NONE for loop in stage.iters):
        raise state.step_error(step, "the stage's loops are annotated; expected annotations after this step")


def _factoring(
    step: TransformStep, state: LoopPreview, stage: Stage, op: ComputeOp, factor: Iterator, position: int
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
        raise state.step_error(
            step, "the extents of the reduction loops are not known; expected all split lengths"
        )
    loop_values = axis_values(stage, names)
    if any(loop_name(axis.name) not in loop_values.values for axis in op.reduce_axes):
        raise state.step_error(step, "the extents of loops that were fused or split are not known")
    return Factoring(
        factor=IterVar(names[factor.name], factor.extent or 0),
        position=position,
        reduce_axes=(
            *whole,
            *(IterVar(names[loop.name], loop.extent or 0, IterKind.REDUCTION) for loop in rest),
        ),
        values={
            axis.name: loop_values.values[loop_name(axis.name)]
            for axis in op.reduce_axes
            if axis not in whole
        },
        conditions=loop_values.conditions_on(touched),
    )


def _touched(stage: Stage, factor: str) -> frozenset[str]:
    """Return the names of all past and present loops that share an axis with a loop."""
    groups: dict[str, frozenset[str]] = {}
    for relation in stage.relations:
        # A relation merges the groups of all its loops: whatever is fused or split together shares axes.
        joined = frozenset().union(*(groups.get(name, frozenset({name})) for name in relation.names))
        groups |= dict.fromkeys(joined, joined)
    return groups.get(factor, frozenset({factor}))
