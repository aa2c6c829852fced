"""Products that read matrices where they lie: those of attention's heads, which are parts of longer rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import Step

_LEAST_ROWS: Final = 8
"""With fewer rows no panel of the right matrix is copied, and elements in another order are read slowly."""


def reads_right(step: Step, number: int) -> bool:
    """Whether a value is the right matrix of a product only."""
    return str(step.op) == "MatMul" and step.args[1] == number != step.args[0]


def reads_batches(step: Step, values: Sequence[RegionValue]) -> bool:
    """Whether a step multiplies pairs of matrices, with rows enough for a right one to be copied by panels.

    A product by a single matrix is none: all its rows are those of one product.
    """
    if str(step.op) != "MatMul":
        return False
    left, right = (values[arg].type.static_shape for arg in step.args if arg is not None)
    return len(left) > 2 and len(right) > 2 and left[-2] >= _LEAST_ROWS


def is_softmax(step: Step, values: Sequence[RegionValue]) -> bool:
    """Whether a step is the softmax of rows."""
    if str(step.op) != "Softmax" or step.args[0] is None:
        return False
    rank = len(values[step.args[0]].type.static_shape)
    return step.call.attrs.get("axis", -1) in (-1, rank - 1)


def keeps_rows(step: Step, values: Sequence[RegionValue]) -> bool:
    """Whether a step that moves elements leaves those of a row next to each other."""
    (shape,) = (values[arg].type.static_shape for arg in step.args[:1] if arg is not None)
    match str(step.op):
        case "Transpose":
            order = step.call.attrs.get("perm", tuple(reversed(range(len(shape)))))
            return isinstance(order, tuple) and order[-1] == len(shape) - 1
        case "Slice":
            return values[step.outputs[0]].type.static_shape[-1:] == shape[-1:]
        case _:
            return False
