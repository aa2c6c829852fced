"""Transpositions with as few dimensions as possible: those that stay neighbours are one.

(528, 7, 26) with the permutation (2, 0, 1) is a matrix (3696, 26) that is transposed, so that the loops over
its tiles are long and few.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from intarsia.native.graph.channel_shuffle import permuted_axes
from intarsia.native.graph.kernel_dag import KernelDag, kernel_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_kind import StepKind, step_kind
from intarsia.native.graph.straight_line import KernelStep

_Shape = tuple[int, ...]


class MergedOrder(NamedTuple):
    """A transposition of merged dimensions.

    Attributes:
        source: Shape of the argument.
        order: Dimension of the argument for each one of the result.
    """

    source: _Shape
    order: tuple[int, ...]

    @property
    def result(self) -> _Shape:
        """Shape of the result."""
        return tuple(self.source[axis] for axis in self.order)


def merged_transposition_dag(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], outputs: Sequence[int]
) -> KernelDag | None:
    """Declare a transposition, with elementwise calls before and behind it, on merged dimensions.

    Args:
        steps: Steps in order; a step may read results of earlier steps.
        values: Values of the region.
        outputs: Numbers of results of the steps that other groups need.

    Returns:
        None unless there is one transposition, all other calls read scalars and tensors of its shape before
        or behind it, and at least two dimensions are merged.
    """
    positions = [number for number, step in enumerate(steps) if str(step.op) == "Transpose"]
    if len(positions) != 1:
        return None
    (position,) = positions
    before, step, behind = steps[:position], steps[position], steps[position + 1 :]
    argument = step.args[0]
    if argument is None or any(step_kind(other) is not StepKind.ELEMENTWISE for other in (*before, *behind)):
        return None
    given = values[argument].type.static_shape
    merged = merged_order(given, permuted_axes(step, len(given)))
    if len(merged.source) == len(given):
        return None
    result = values[step.outputs[0]].type.static_shape
    sides = [(before, (argument,), given, merged.source), (behind, step.outputs, result, merged.result)]
    shapes: dict[int, _Shape] = {}
    for part, own, shape, merged_shape in sides:
        numbers = {*own, *(number for each in part for number in (*each.args, *each.outputs))} - {None}
        for number in numbers:
            assert number is not None
            actual = values[number].type.static_shape
            if (actual not in (shape, ())) or (number in shapes and actual):
                return None
            shapes[number] = merged_shape if actual else ()
    attrs = {position: step.call.attrs.updated(perm=merged.order)}
    return kernel_dag(steps, values, outputs, shapes=shapes, attrs=attrs)


def merged_order(shape: _Shape, order: Sequence[int]) -> MergedOrder:
    """Merge the dimensions that are neighbours in argument and result; those of one element are left out.

    Args:
        shape: Shape of the argument.
        order: Dimension of the argument for each one of the result.
    """
    kept = [axis for axis, extent in enumerate(shape) if extent != 1]
    position_of = {axis: number for number, axis in enumerate(kept)}
    groups: list[list[int]] = []
    for axis in (position_of[axis] for axis in order if axis in position_of):
        if groups and groups[-1][-1] + 1 == axis:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    by_source = sorted(groups)
    source = tuple(prod(shape[kept[axis]] for axis in group) for group in by_source)
    return MergedOrder(source, tuple(by_source.index(group) for group in groups))
