"""A group around a product of a tensor by one matrix: all its rows as those of one matrix.

A tensor of images (N, H, W, C) has N * H * W rows. As a product of batches of W rows each batch would read
the matrix again; as one product of all rows it is read as often as rows do not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from intarsia.ir import TensorType
from intarsia.native.graph.kernel_dag import KernelDag, Source, step_name, with_placeholders
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_kind import StepKind, step_kind
from intarsia.native.graph.straight_line import Step
from intarsia.native.te import Tensor, placeholder
from intarsia.native.te.operators import compute, compute_call_of

_Shape = tuple[int, ...]


def joined_rows_dag(steps: Sequence[Step], values: Sequence[RegionValue]) -> KernelDag | None:
    """The calls applied one after another, on values with their rows as one dimension.

    Args:
        steps: In order; the last one makes the only result.
        values: All values of the region.

    Returns:
        None unless all calls but one product by a matrix are elementwise, and there are batches to be joined.
    """
    products = [step for step in steps if str(step.op) == "MatMul"]
    if len(products) != 1:
        return None
    leading = values[products[0].outputs[0]].type.static_shape[:-1]
    if len(leading) < 2 or prod(leading[:-1]) < 2 or 0 in leading:
        return None
    shapes: dict[int, _Shape] = {}
    for step in steps:
        found = _shapes_of(step, values, leading, step is products[0])
        if found is None:
            return None
        shapes |= found
    return _declared(steps, values, shapes)


def _shapes_of(
    step: Step, values: Sequence[RegionValue], leading: _Shape, is_product: bool
) -> dict[int, _Shape] | None:
    """The shapes of what a step reads and makes, with rows joined; None if they cannot be."""
    if not is_product and step_kind(step) is not StepKind.ELEMENTWISE:
        return None
    found: dict[int, _Shape] = {}
    for place, number in enumerate((*step.outputs, *step.args)):
        if number is None:
            continue
        shape = values[number].type.static_shape
        is_matrix = is_product and place == len(step.outputs) + 1
        joined = shape if is_matrix else _joined(shape, leading)
        if joined is None or (is_product and len(joined) != 2):
            return None
        if found.setdefault(number, joined) != joined:
            return None
    return found


def _joined(shape: _Shape, leading: _Shape) -> _Shape | None:
    """A shape with its rows as one dimension; without it where one row is stretched over all."""
    if shape[:-1] == leading:
        return prod(leading), shape[-1]
    is_row = len(shape) <= len(leading) + 1 and all(extent == 1 for extent in shape[:-1])
    return shape[-1:] if is_row else None


def _declared(steps: Sequence[Step], values: Sequence[RegionValue], shapes: dict[int, _Shape]) -> KernelDag:
    made: dict[int, Tensor] = {}
    sources: dict[Tensor, Source] = {}
    given: dict[int, Tensor] = {}
    count: Counter[str] = Counter()

    def tensor(number: int) -> Tensor:
        if number in made:
            return made[number]
        if number not in given:
            is_constant = values[number].constant is not None
            name = f"{'c' if is_constant else 'x'}{len(given)}"
            attrs = {"constant": 1} if is_constant else {}
            given[number] = placeholder(shapes[number], values[number].type.dtype, name, attrs)
            sources[given[number]] = Source(number)
        return given[number]

    for step in steps:
        described = compute_call_of(step.call, step_name(step, count))
        inputs = tuple(None if arg is None else tensor(arg) for arg in step.args)
        constants = tuple(None if arg is None else values[arg].constant for arg in step.args)
        types = tuple(TensorType(shapes[out], values[out].type.dtype) for out in step.outputs)
        call = replace(described, inputs=inputs, output_types=types, constants=constants)
        made |= dict(zip(step.outputs, compute(call), strict=True))
    return with_placeholders((made[steps[-1].outputs[0]],), sources)
