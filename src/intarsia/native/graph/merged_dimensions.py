"""Elementwise calls with as few dimensions as possible: neighbouring ones that all tensors share are one.

A sum of two images (N, C, H, W) is a sum of two vectors, and one of an image and a value for each channel
has the shape (N, C, H x W). Loops are longer then, and vectors are full: rows of two elements would fill a
quarter of a vector each.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from intarsia.native.graph.kernel_dag import KernelDag, reshaped_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_kind import StepKind, step_kind
from intarsia.native.graph.straight_line import KernelStep

_Shape = tuple[int, ...]

_OTHERS: Final = frozenset({"BatchNormalization", "CastLike", "DequantizeLinear", "Expand", "QuantizeLinear"})
"""Elementwise operators with arguments that are not broadcast: vectors along an axis, shapes, examples."""


def merged_dimensions_dag(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], outputs: Sequence[int]
) -> KernelDag | None:
    """Declare consecutive elementwise calls on tensors with merged dimensions.

    Args:
        steps: Steps in order; a step may read results of earlier steps.
        values: Values of the region.
        outputs: Numbers of results of the steps that other groups need.

    Returns:
        None unless all calls are elementwise and at least two dimensions are merged.
    """
    if any(step_kind(step) is not StepKind.ELEMENTWISE or step.op.name in _OTHERS for step in steps):
        return None
    numbers = {number for step in steps for number in (*step.outputs, *step.args) if number is not None}
    shapes = _merged({number: values[number].type.static_shape for number in numbers})
    if shapes is None:
        return None
    return reshaped_dag(steps, values, shapes, outputs)


def _merged(shapes: dict[int, _Shape]) -> dict[int, _Shape] | None:
    """Return shapes with merged dimensions by number; None if nothing can be merged."""
    rank = max(map(len, shapes.values()))
    padded = {number: (1,) * (rank - len(shape)) + shape for number, shape in shapes.items()}
    whole = tuple(max(extents) for extents in zip(*padded.values(), strict=True))
    if 0 in whole:
        return None
    # The dimensions of more than one element, each with the tensors that have all of it.
    axes = [axis for axis in range(rank) if whole[axis] > 1]
    having = [frozenset(number for number, shape in padded.items() if shape[axis] > 1) for axis in axes]
    groups: list[list[int]] = []
    for position, axis in enumerate(axes):
        if position and having[position] == having[position - 1]:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if len(groups) == len(axes):
        return None
    return {
        number: tuple(prod(padded[number][axis] for axis in group) for group in groups) if shape else shape
        for number, shape in shapes.items()
    }
