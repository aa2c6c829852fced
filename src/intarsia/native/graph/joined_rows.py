"""Products of a tensor by one matrix, with the rows of all batches as one matrix.

A tensor of images (N, H, W, C) has N * H * W rows. In batches of W rows, each batch would read the matrix
again. One product of all rows reads the matrix once for each block of rows that fits into the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from intarsia.native.graph.block_steps import BlockStep
from intarsia.native.graph.kernel_dag import KernelDag, kernel_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_kind import StepKind, step_kind
from intarsia.native.graph.straight_line import KernelStep

_Shape = tuple[int, ...]


def joined_rows_dag(steps: Sequence[KernelStep], values: Sequence[RegionValue]) -> KernelDag | None:
    """Declare consecutive calls on values with their rows as one dimension.

    Args:
        steps: Steps in order; the last one computes the only result.
        values: Values of the region.

    Returns:
        None unless all calls but one product by a matrix are elementwise, and there are batches to join.
    """
    products = [step for step in steps if str(step.op) == "MatMul"]
    if len(products) != 1:
        return None
    leading = values[products[0].outputs[0]].type.static_shape[:-1]
    if len(leading) < 2 or prod(leading[:-1]) < 2 or 0 in leading:
        return None
    shapes: dict[int, _Shape] = {}
    for step in steps:
        step_shapes = _shapes_of(step, values, leading, step is products[0])
        if step_shapes is None:
            return None
        shapes |= step_shapes
    return kernel_dag(steps, values, steps[-1].outputs, shapes=shapes)


def _shapes_of(
    step: KernelStep, values: Sequence[RegionValue], leading: _Shape, is_product: bool
) -> dict[int, _Shape] | None:
    """Return the shapes of a step's arguments and results with joined rows; None if that is impossible."""
    if not is_product and step_kind(step) is not StepKind.ELEMENTWISE:
        return None
    shapes: dict[int, _Shape] = {}
    for position, number in enumerate((*step.outputs, *step.args)):
        if number is None:
            continue
        shape = values[number].type.static_shape
        is_matrix = is_product and position == len(step.outputs) + 1
        joined = shape if is_matrix else _joined(shape, leading)
        has_panels = is_matrix and isinstance(step, BlockStep)
        if joined is None or (is_product and len(joined) != 2 and not has_panels):
            return None
        if shapes.setdefault(number, joined) != joined:
            return None
    return shapes


def _joined(shape: _Shape, leading: _Shape) -> _Shape | None:
    """Return a shape with its rows as one dimension, which a broadcast row lacks; None if they differ."""
    if shape[:-1] == leading:
        return prod(leading), shape[-1]
    is_row = len(shape) <= len(leading) + 1 and all(extent == 1 for extent in shape[:-1])
    return shape[-1:] if is_row else None
