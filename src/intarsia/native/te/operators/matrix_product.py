"""MatMul and Gemm: one reduction, then scaling and bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.broadcasting import element_at
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.convolution import layout_free
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.tensor import ComputeOp, Tensor

_LEAST_ROWS: Final = 2
"""Least number of rows for which transposing a variable matrix pays: each element is read once a row."""


@compute_rule("MatMul")
@in_float32
def matmul(call: ComputeCall) -> Sequence[Tensor]:
    """Declare products of matrices, with leading dimensions broadcast; vectors are a row or a column."""
    lhs, rhs = call.input(0), call.input(1)
    k = reduce_axis(lhs.shape[-1], "rk")
    has_row, has_column = len(lhs.shape) > 1, len(rhs.shape) > 1
    batch = len(call.shape) - has_row - has_column

    def element(*indices: Expression) -> Reduction:
        leading, rest = indices[:batch], list(indices[batch:])
        row = [rest.pop(0)] if has_row else []
        left = _matrix_at(lhs, leading, [*row, k.expression])
        return functions.sum(left * _matrix_at(rhs, leading, [k.expression, *rest]), k)

    return [compute(call.shape, element, call.name, attrs=_free_layouts(rhs))]


def _matrix_at(x: Tensor, leading: Sequence[Expression], at: Sequence[Expression]) -> Expression:
    """Return an element of the matrix that belongs to indices of the broadcast leading dimensions."""
    matrix_leading = leading[len(leading) - (len(x.shape) - len(at)) :]
    first = [0 if extent == 1 else index for extent, index in zip(x.shape, matrix_leading, strict=False)]
    return x[(*first, *at)]


@compute_rule("Gemm")
@in_float32
def gemm(call: ComputeCall) -> Sequence[Tensor]:
    """Declare alpha * A * B + beta * C, A and B transposed by their attributes."""
    a, b, dtype = call.input(0), call.input(1), call.output_type.dtype
    is_turned = bool(call.integer("transA")), bool(call.integer("transB"))
    free = _free_layouts(b)
    if is_turned[1] and not free and call.shape[0] >= _LEAST_ROWS:
        b, is_turned = _turned(b, f"{call.name}.turned"), (is_turned[0], False)
    k = reduce_axis(a.shape[0] if is_turned[0] else a.shape[1], "rk")
    alpha, beta = (_factor(call, name) for name in ("alpha", "beta"))
    has_bias = call.has_input(2) and beta != 0

    def product(i: Expression, j: Expression) -> Reduction:
        left = a[k, i] if is_turned[0] else a[i, k]
        return functions.sum(left * (b[j, k] if is_turned[1] else b[k, j]), k)

    def finished(*indices: Expression) -> Expression:
        value = products[indices] if alpha == 1 else products[indices] * alpha
        if not has_bias:
            return value
        bias = element_at(call.input(2), indices).astype(dtype)
        return value + (bias if beta == 1 else bias * beta)

    is_plain = alpha == 1 and not has_bias
    products = compute(call.shape, product, call.name if is_plain else f"{call.name}.product", attrs=free)
    return [products if is_plain else compute(call.shape, finished, call.name)]


def _free_layouts(x: Tensor) -> dict[str, tuple[str, ...]]:
    """Return the attribute for a constant in any layout, also one that is cast element by element."""
    if isinstance(x.op, ComputeOp) and x.op.combiner is None:
        return layout_free(*(each for each in x.op.inputs if each.shape == x.shape))
    return layout_free(x)


def _turned(x: Tensor, name: str) -> Tensor:
    """Declare the transposed matrix, as a stage of its own: rows of a product read it along its rows."""
    return compute((x.shape[1], x.shape[0]), lambda i, j: x[j, i], name)


def _factor(call: ComputeCall, name: str) -> float:
    value = call.real(name)
    if not call.output_type.dtype.is_float and value != int(value):
        raise call.not_covered(f"integers scaled by {value}")
    return value
