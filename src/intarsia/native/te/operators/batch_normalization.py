"""Normalizations whose statistics are given or local: BatchNormalization, LRN, LpNormalization."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Final

from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, equal, if_then_else, logical_and, power, select, sqrt
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.reduced_axes import normalized_axis, reduce_over, reduced_element
from intarsia.native.te.operators.scalar_functions import absolute
from intarsia.native.te.tensor import Tensor

_MOST_SUMMANDS: Final = 8
"""Most neighbours whose squares are summed up in one expression."""


@compute_rule("BatchNormalization")
@in_float32
def batch_normalization(call: ComputeCall) -> Sequence[Tensor]:
    """Normalize as in inference, by a given mean and variance of each channel."""
    if call.integer("training_mode") or len(call.output_types) > 1:
        raise call.not_covered("training")
    x, scale, bias, mean, variance = (call.input(position) for position in range(5))
    epsilon, dtype = call.real("epsilon"), call.output_type.dtype
    factor = compute(
        scale.shape,
        lambda c: scale[c].astype(dtype) / sqrt(variance[c].astype(dtype) + epsilon),
        f"{call.name}.factor",
    )

    def element(*i: Expression) -> Expression:
        channel = i[1] if len(i) > 1 else const(0, i[0].dtype)
        return (x[i] - mean[channel].astype(dtype)) * factor[channel] + bias[channel].astype(dtype)

    return [compute(call.shape, element, call.name)]


@compute_rule("LRN")
@in_float32
def lrn(call: ComputeCall) -> Sequence[Tensor]:
    """Divide by a power of the sum of squares over neighbouring channels."""
    x, size, name = call.input(0), call.integer("size"), call.name
    total = _sum_of_few(x, size, name) if size <= _MOST_SUMMANDS else _sum_of_many(x, size, name)
    alpha, beta, bias = call.real("alpha") / size, call.real("beta"), call.real("bias")
    base = compute(x.shape, lambda *i: total[i] * alpha + bias, f"{name}.base")
    return [compute(call.shape, lambda *i: x[i] / _power(base[i], beta), name)]


def _sum_of_few(x: Tensor, size: int, name: str) -> Tensor:
    """Sum the squares of neighbouring channels where they are read."""
    channels, before = x.shape[1], (size - 1) // 2
    offsets = [offset for offset in range(-before, size - before) if abs(offset) < max(channels, 1)]

    def square(offset: int, n: Expression, c: Expression, i: Sequence[Expression]) -> Expression:
        value = x[(n, c + offset, *i)]
        if offset == 0:
            return value * value
        return if_then_else(c >= -offset if offset < 0 else c < channels - offset, value * value, 0.0)

    def squares(n: Expression, c: Expression, *i: Expression) -> Expression:
        return reduce(add, (square(offset, n, c, i) for offset in offsets))

    return compute(x.shape, squares, f"{name}.squares")


def _sum_of_many(x: Tensor, size: int, name: str) -> Tensor:
    """Sum the squares of neighbouring channels by a reduction of padded channels."""
    channels, before = x.shape[1], (size - 1) // 2
    padded = compute(
        (x.shape[0], channels + size - 1, *x.shape[2:]),
        lambda n, c, *i: if_then_else(
            logical_and(c >= before, c < channels + before), x[(n, c - before, *i)], 0.0
        ),
        f"{name}.pad",
    )
    window = reduce_axis(size, "rc")

    def squares(n: Expression, c: Expression, *i: Expression) -> Reduction:
        value = padded[(n, c + window.expression, *i)]
        return functions.sum(value * value, window)

    return compute(x.shape, squares, f"{name}.squares")


def _power(base: Expression, exponent: float) -> Expression:
    """Return a power; the usual exponent of LRN, 0.75, by square roots."""
    if exponent == 0.75:
        # x ** 0.75 == sqrt(x) * sqrt(sqrt(x)): two square roots are cheaper than a power.
        return sqrt(base) * sqrt(sqrt(base))
    return power(base, exponent)


@compute_rule("LpNormalization")
@in_float32
def lp_normalization(call: ComputeCall) -> Sequence[Tensor]:
    """Divide by the sum of magnitudes, or the root of the sum of squares, along an axis; 0 for norm 0."""
    x, axes = call.input(0), (normalized_axis(call.integer("axis"), len(call.shape)),)
    is_sum = call.integer("p") == 1
    total = reduce_over(
        x, axes, functions.sum, f"{call.name}.sum", absolute if is_sum else lambda value: value * value
    )
    norm = compute(total.shape, lambda *i: total[i] if is_sum else sqrt(total[i]), f"{call.name}.norm")

    def element(*i: Expression) -> Expression:
        divisor = reduced_element(norm, i, axes)
        return select(equal(divisor, 0.0), const(0.0, x.dtype), x[i] / divisor)

    return [compute(call.shape, element, call.name)]
