"""Slices with as few dimensions as possible: what lies behind a cut dimension belongs to it.

Slice((222, 7, 299, 2), rows 74 to 299) copies rows of 2 elements; as (1554, 598) it copies 450 at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from intarsia.ir import TensorType
from intarsia.native.graph.kernel_dag import KernelDag, kernel_dag
from intarsia.native.graph.merged_dimensions import is_broadcast
from intarsia.native.graph.merged_padding import groups_from, shapes_of_cut
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te.operators.reduced_axes import normalized_axis


def merged_slice_dag(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], outputs: Sequence[int]
) -> KernelDag | None:
    """Declare a slice without steps, and elementwise calls behind it, on merged dimensions.

    Args:
        steps: Steps in order; the first one cuts.
        values: Values of the region.
        outputs: Numbers of results of the steps that other groups need.

    Returns:
        None unless the calls are of these kinds, those behind read scalars and tensors of the result's shape
        only, the borders are constants, and dimensions are merged.
    """
    first, *behind = steps
    if str(first.op) != "Slice" or first.args[0] is None or not all(map(is_broadcast, behind)):
        return None
    given, result = (values[number].type.static_shape for number in (first.args[0], first.outputs[0]))
    begins = _begins(first, values)
    if begins is None or 0 in result:
        return None
    groups = groups_from(before != after for before, after in zip(given, result, strict=True))
    shapes = shapes_of_cut(first, behind, values, groups)
    if len(groups) == len(given) or shapes is None:
        return None
    inner = [prod(given[axis] for axis in group[1:]) for group in groups]
    starts = [begins[group[0]] * rest for group, rest in zip(groups, inner, strict=True)]
    ends = [begin + extent for begin, extent in zip(starts, shapes[first.outputs[0]], strict=True)]
    arrays = (starts, ends, range(len(groups)), [1] * len(groups))
    # One constant may be several arguments, such as the first index and the axis: each gets its number.
    numbers: list[int | None] = []
    with_numbers = list(values)
    for number, array in zip(first.args[1:], arrays, strict=False):
        if number is None:
            numbers.append(None)
            continue
        elements = np.array(array, np.int64)
        type_ = TensorType(elements.shape, values[number].type.dtype)
        numbers.append(len(with_numbers))
        with_numbers.append(RegionValue(type_, len(with_numbers), elements))
    cut = replace(first, args=(first.args[0], *numbers))
    return kernel_dag((cut, *behind), with_numbers, outputs, shapes=shapes)


def _begins(step: KernelStep, values: Sequence[RegionValue]) -> list[int] | None:
    """Return the first index of each dimension; None if it is computed, or elements are left out between."""
    source, *others = step.args
    assert source is not None, "the caller has looked"
    given = values[source].type.static_shape
    arrays = [None if number is None else values[number].constant for number in others]
    if any(array is None for number, array in zip(others, arrays, strict=True) if number is not None):
        return None
    starts, _, axes, steps = (*arrays, None, None)[:4]
    if starts is None or axes is None or (steps is not None and (steps != 1).any()):
        return None
    begins = [0] * len(given)
    for start, axis in zip(starts.reshape(-1), axes.reshape(-1), strict=True):
        at = normalized_axis(int(axis), len(given))
        begins[at] = min(max(int(start) + (given[at] if start < 0 else 0), 0), given[at])
    return begins
