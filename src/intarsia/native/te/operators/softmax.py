"""Softmax and LogSoftmax in stages: maximum, exponential, sum, and the product with the sum's reciprocal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from intarsia.native.te import functions
from intarsia.native.te.combiner import Combiner, Reduction
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import exp, log, reduce, select
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.reduced_axes import normalized_axis, reduce_over, reduced_element
from intarsia.native.te.tensor import Tensor


@compute_rule("Softmax", "LogSoftmax")
@in_float32
def softmax(call: ComputeCall) -> Sequence[Tensor]:
    """Declare exponentials over their sum along an axis, or the logarithm of that."""
    x, name = call.input(0), call.name
    axes = (normalized_axis(call.integer("axis"), len(call.shape)),)
    largest = reduce_over(x, axes, _largest_number, f"{name}.max")
    shifted = compute(x.shape, lambda *i: exp(x[i] - reduced_element(largest, i, axes)), f"{name}.exp")
    total = reduce_over(shifted, axes, functions.sum, f"{name}.sum")
    if call.op_name == "Softmax":
        # One division a row and a product for each element: products are cheaper.
        share = compute(total.shape, lambda *i: 1.0 / total[i], f"{name}.share")
        return [compute(call.shape, lambda *i: shifted[i] * reduced_element(share, i, axes), name)]
    logs = compute(total.shape, lambda *i: log(total[i]), f"{name}.log")
    return [
        compute(
            call.shape,
            lambda *i: x[i] - reduced_element(largest, i, axes) - reduced_element(logs, i, axes),
            name,
        )
    ]


def _largest_number(value: Expression, axes: Sequence[IterVar]) -> Reduction:
    """Reduce to the maximum, which may skip NaN: its exponential is NaN anyway, and makes the sum NaN."""

    def larger(before: tuple[Expression, ...], new: tuple[Expression, ...]) -> tuple[Expression, ...]:
        # One compare and select; the NaN-propagating maximum takes more instructions.
        return (select(before[0] > new[0], before[0], new[0]),)

    combiner = Combiner.of("largest_number", [(-math.inf, value.dtype)], larger)
    return reduce(combiner, (value,), axes)
