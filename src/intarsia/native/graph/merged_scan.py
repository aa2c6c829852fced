"""Cumulative sums with as few dimensions as possible: those before the axis are one, and those behind it.

CumSum((14, 9, 207, 5), axis 1) adds rows of 5 elements; as (14, 9, 1035) it adds rows of 1,035.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from intarsia.native.graph.kernel_dag import KernelDag, kernel_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te.operators.reduced_axes import normalized_axis


def merged_scan_dag(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], outputs: Sequence[int]
) -> KernelDag | None:
    """Declare a cumulative sum on merged dimensions.

    Args:
        steps: Steps in order.
        values: Values of the region.
        outputs: Numbers of results of the steps that other groups need.

    Returns:
        None unless the only step is a CumSum along a constant axis, and dimensions are merged.
    """
    if len(steps) != 1 or str(steps[0].op) != "CumSum":
        return None
    source, number = steps[0].args
    constant = None if number is None else values[number].constant
    if source is None or number is None or constant is None:
        return None
    shape = values[source].type.static_shape
    axis = normalized_axis(int(constant.reshape(-1)[0]), len(shape))
    sides = [shape[:axis], (shape[axis],), shape[axis + 1 :]]
    merged = tuple(prod(side) for side in sides if side)
    if len(merged) == len(shape):
        return None
    position = np.array(1 if axis else 0, constant.dtype).reshape(constant.shape)
    shapes = {source: merged, steps[0].outputs[0]: merged}
    return kernel_dag(steps, values, outputs, shapes=shapes, constants={number: position})
