"""Paddings with as few dimensions as possible: what lies behind a padded dimension belongs to it.

Pad((72, 4, 223, 2), 1 row before, 2 behind) pads rows of 2 elements; as (288, 446) it pads 2 elements before
rows of 446, and 4 behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from intarsia.native.graph.kernel_dag import KernelDag, kernel_dag
from intarsia.native.graph.merged_dimensions import is_broadcast
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te.operators.reduced_axes import normalized_axis

_Shape = tuple[int, ...]


def merged_padding_dag(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], outputs: Sequence[int]
) -> KernelDag | None:
    """Declare a padding with a constant, and elementwise calls behind it, on merged dimensions.

    Args:
        steps: Steps in order; the first one pads.
        values: Values of the region.
        outputs: Numbers of results of the steps that other groups need.

    Returns:
        None unless the calls are of these kinds, those behind read scalars and tensors of the result's shape
        only, the borders are constants, and dimensions are merged.
    """
    first, *behind = steps
    if str(first.op) != "Pad" or first.call.attrs.get("mode", "constant") != "constant":
        return None
    source, borders_of = first.args[0], first.args[1]
    if source is None or borders_of is None or not all(map(is_broadcast, behind)):
        return None
    given = values[source].type.static_shape
    borders = _borders(first, values)
    if borders is None or 0 in given:
        return None
    groups = groups_from(any(border) for border in borders)
    shapes = shapes_of_cut(first, behind, values, groups)
    if shapes is None:
        return None
    if len(groups) == len(given):
        return None
    inner = [prod(given[axis + 1] for axis in range(group[0], group[-1])) for group in groups]
    sides = [
        [borders[group[0]][side] * rest for group, rest in zip(groups, inner, strict=True)] for side in (0, 1)
    ]
    constants = {borders_of: np.array(sides, np.int64).reshape(-1)}
    axes = first.args[3] if len(first.args) > 3 else None
    if axes is not None:
        constants[axes] = np.arange(len(groups), dtype=np.int64)
    if len(constants) < 1 + (axes is not None) or constants.keys() & shapes.keys():
        return None
    return kernel_dag(steps, values, outputs, shapes=shapes, constants=constants)


def _borders(step: KernelStep, values: Sequence[RegionValue]) -> list[tuple[int, int]] | None:
    """Return the number of elements before and behind each dimension; None if it is computed."""
    source, pads, _, axes_of = (*step.args, None, None)[:4]
    assert source is not None, "the caller has looked"
    assert pads is not None, "the caller has looked"
    given = values[pads].constant
    rank = len(values[source].type.static_shape)
    axes = np.arange(rank) if axes_of is None else values[axes_of].constant
    if given is None or axes is None:
        return None
    borders = [(0, 0)] * rank
    flat = given.reshape(-1)
    for position, axis in enumerate(axes.reshape(-1)):
        begin, end = flat[position], flat[position + axes.size]
        borders[normalized_axis(int(axis), rank)] = int(begin), int(end)
    return borders


def shapes_of_cut(
    first: KernelStep,
    behind: Sequence[KernelStep],
    values: Sequence[RegionValue],
    groups: Sequence[Sequence[int]],
) -> dict[int, _Shape] | None:
    """Return the merged shapes of a step, and of the elementwise ones behind it.

    Args:
        first: Step that pads or cuts its first argument.
        behind: Steps behind it.
        values: Values of the region.
        groups: Dimensions that are merged.

    Returns:
        Shapes by number; None if a step behind reads other shapes than scalars and that of the result.
    """
    assert first.args[0] is not None, "the caller has looked"
    result = values[first.outputs[0]].type.static_shape
    shapes = {
        number: tuple(prod(values[number].type.static_shape[axis] for axis in group) for group in groups)
        for number in (first.args[0], first.outputs[0])
    }
    for number in {number for step in behind for number in (*step.args, *step.outputs)} - {None}:
        assert number is not None
        shape = values[number].type.static_shape
        if shape != result and shape:
            return None
        if shape:
            shapes[number] = shapes[first.outputs[0]]
    return shapes


def groups_from(begins: Iterable[bool]) -> list[list[int]]:
    """Return the dimensions in groups, each of which begins with the first one or with one that is changed.

    Args:
        begins: Whether each dimension is changed.
    """
    groups: list[list[int]] = []
    for axis, is_changed in enumerate(begins):
        if not groups or is_changed:
            groups.append([axis])
        else:
            groups[-1].append(axis)
    return groups
