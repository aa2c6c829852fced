"""MatMulInteger and QLinearMatMul, and requantization of integer sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from intarsia.ir import DType
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import call as intrinsic
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.operators.broadcasting import element_at
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import ZERO, Indices
from intarsia.native.te.operators.saturation import clipped
from intarsia.native.te.tensor import Tensor

Parameter: TypeAlias = Callable[[Indices], Expression]
"""Function from the indices of an element to its scale or zero point."""


@compute_rule("MatMulInteger")
def matmul_integer(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a matrix product in int32 of 8-bit integers less their zero points."""
    a, b = call.input(0), call.input(1)
    left = centered(a, _of_rows(call, 2, a), f"{call.name}.a")
    right = centered(b, _of_columns(call, 3), f"{call.name}.b")
    return [_product(left, right, call.shape, call.name)]


@compute_rule("QLinearMatMul")
def qlinear_matmul(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a matrix product of quantized integers, brought to the scale and zero point of the result."""
    a, b = call.input(0), call.input(3)
    left = centered(a, _of_rows(call, 2, a), f"{call.name}.a")
    right = centered(b, _of_columns(call, 5), f"{call.name}.b")
    total = _product(left, right, call.shape, f"{call.name}.sum")
    has_rows, has_columns = len(a.shape) > 1, len(b.shape) > 1

    def parameter(position: int, is_of_rows: bool) -> Parameter:
        """Return the parameter of a row or a column of the result, or of all of it."""
        tensor = call.input(position)
        if math.prod(tensor.shape) == 1:
            return lambda _: tensor[(ZERO,) * len(tensor.shape)]
        if is_of_rows and has_rows and len(tensor.shape) == 1:
            return lambda i: tensor[i[-2] if has_columns else i[-1]]
        if is_of_rows and not has_columns:
            return lambda i: element_at(tensor, (*i, ZERO))
        return lambda i: element_at(tensor, i)

    scales = parameter(1, True), parameter(4, False), parameter(6, True)
    return [requantized(call, total, scales, parameter(7, True))]


def centered(x: Tensor, zero: Parameter | None, name: str) -> Tensor:
    """Declare integers in int32 without their zero point."""

    def element(*i: Expression) -> Expression:
        number = x[i].astype(DType.INT32)
        return number if zero is None else number - zero(i).astype(DType.INT32)

    return compute(x.shape, element, name)


def requantized(
    call: ComputeCall, total: Tensor, scales: tuple[Parameter, Parameter, Parameter], zero: Parameter | None
) -> Tensor:
    """Declare total * (first scale * second scale / third scale) + zero point, rounded and clipped."""
    dtype = call.output_type.dtype

    def element(*i: Expression) -> Expression:
        first, second, third = (scale(i).astype(DType.FLOAT32) for scale in scales)
        # float32 holds integers up to 2**24 only; int32 sums are exact in float64.
        moved = total[i].astype(DType.FLOAT64) * (first * second / third).astype(DType.FLOAT64)
        if zero is not None:
            moved = moved + zero(i).astype(DType.FLOAT64)
        return clipped(intrinsic("round_even", moved), dtype)

    return compute(total.shape, element, call.name)


def _of_rows(call: ComputeCall, position: int, matrix: Tensor) -> Parameter | None:
    """Return the zero point of an element of the left operand: one for all, or for each row."""
    if not call.has_input(position):
        return None
    zero = call.input(position)
    if math.prod(zero.shape) == 1:
        return lambda _: zero[(ZERO,) * len(zero.shape)]
    if len(zero.shape) == 1 and len(matrix.shape) > 1:
        return lambda i: zero[i[-2]]
    return lambda i: element_at(zero, i)


def _of_columns(call: ComputeCall, position: int) -> Parameter | None:
    """Return the zero point of an element of the right operand: one for all, or for each column."""
    if not call.has_input(position):
        return None
    zero = call.input(position)
    if math.prod(zero.shape) == 1:
        return lambda _: zero[(ZERO,) * len(zero.shape)]
    return lambda i: element_at(zero, i)


def _product(a: Tensor, b: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    """Declare the matrix product as in NumPy: a vector is a row on the left and a column on the right."""
    axis = reduce_axis(a.shape[-1], "rk")
    k = axis.expression

    def element(*i: Expression) -> Expression:
        columns = len(b.shape) > 1
        row = () if len(a.shape) == 1 else (i[-2] if columns else i[-1],)
        column = (i[-1],) if columns else ()
        batch = i[: len(i) - len(row) - len(column)]
        left = _of_batch(a, batch, (*row, k))
        right = _of_batch(b, batch, (k, *column))
        return left * right

    return compute(shape, lambda *i: te_sum(element(*i), axis), name)


def _of_batch(x: Tensor, batch: Indices, position: Indices) -> Expression:
    """Return the element at a position of the matrix that a batch index broadcasts to."""
    count = len(x.shape) - len(position)
    matrix_batch = batch[len(batch) - count :]
    lead = tuple(ZERO if n == 1 else i for i, n in zip(matrix_batch, x.shape[:count], strict=True))
    return x[(*lead, *position)]
