"""Reductions with as few dimensions as possible: neighbours that are all reduced, or all kept, are one.

ReduceMax((N, C, 35, 9), axes=(0, 2, 3)) reduces rows of 9 elements; as (N, C, 315) it reduces rows of 315.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.native.graph.kernel_dag import KernelDag, kernel_dag
from intarsia.native.graph.merged_dimensions import is_broadcast, merged_axes, merged_shapes
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te.operators.reduced_axes import kept_shape, normalized_axis

_POSITIONS = frozenset(["ArgMax", "ArgMin"])
"""Operators that reduce the one axis that an attribute names, the first one by default."""
_REDUCTIONS = frozenset(
    [
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    ]
)


def merged_reduction_dag(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], outputs: Sequence[int]
) -> KernelDag | None:
    """Declare elementwise calls and a reduction of their result on tensors with merged dimensions.

    Args:
        steps: Steps in order; the last one reduces.
        values: Values of the region.
        outputs: Numbers of results of the steps that other groups need.

    Returns:
        None unless the calls are of these kinds, the axes are constants, and dimensions are merged.
    """
    *before, last = steps
    if last.op.domain or last.op.name not in _REDUCTIONS | _POSITIONS:
        return None
    if tuple(outputs) != tuple(last.outputs):
        return None
    if any(step.op.domain or not is_broadcast(step) for step in before):
        return None
    source, axes = last.args[0], _axes(last, values)
    if source is None or not axes:
        return None
    shape = values[source].type.static_shape
    shapes = {
        item: values[item].type.static_shape
        for step in before
        for item in (*step.outputs, *step.args)
        if item is not None
    }
    shapes |= {source: shape, last.outputs[0]: kept_shape(shape, tuple(axes))}
    number = None if last.op.name in _POSITIONS else last.args[1]
    if number in shapes or max(map(len, shapes.values())) != len(shape):
        return None
    starts = frozenset(axis for axis in range(1, len(shape)) if (axis in axes) != (axis - 1 in axes))
    groups = merged_axes(shapes, starts)
    if groups is None:
        return None
    reduced = [position for position, group in enumerate(groups) if group[0] in axes]
    if not reduced:
        return None
    attrs = last.call.attrs.updated(keepdims=1)
    return kernel_dag(
        steps,
        values,
        outputs,
        shapes=merged_shapes(shapes, groups),
        attrs={len(before): attrs.updated(axis=reduced[0]) if number is None else attrs},
        constants={} if number is None else {number: np.array(reduced, np.int64)},
    )


def _axes(step: KernelStep, values: Sequence[RegionValue]) -> frozenset[int]:
    """Return the axes of a reduction, counted from the first dimension; none if they are no constant."""
    if step.op.name in _POSITIONS and step.args[0] is not None:
        axis = step.call.attrs.get("axis", 0)
        assert isinstance(axis, int)
        return frozenset({normalized_axis(axis, len(values[step.args[0]].type.static_shape))})
    number = step.args[1] if len(step.args) > 1 else None
    constant = None if number is None else values[number].constant
    if constant is None or step.args[0] is None:
        return frozenset()
    rank = len(values[step.args[0]].type.static_shape)
    return frozenset(normalized_axis(int(axis), rank) for axis in constant.reshape(-1))
