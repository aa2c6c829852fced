"""Sums of products of bfloat16 numbers in float32, by words of two."""

from __future__ import annotations

from typing import Final

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.convolution import layout_free
from intarsia.native.te.tensor import Tensor

_ONE: Final = 0x3F80
"""Bits of 1 in bfloat16."""
_LOWER: Final = 0xFFFF


def dot_of_pairs(left: Expression, right: Expression) -> Expression:
    """Return the sum of products of the two bfloat16 numbers of two words, in float32."""
    return functions.call("dot_bf16", left, right)


def product_of_pairs(x: Tensor, weight: Tensor, name: str) -> Tensor:
    """Declare a product (..., K / 2) times (K / 2, N) of words of two numbers, in float32."""
    k = reduce_axis(weight.shape[0], "rk")

    def element(*i: Expression) -> Reduction:
        return functions.sum(dot_of_pairs(x[(*i[:-1], k.expression)], weight[k, i[-1]]), k)

    return compute((*x.shape[:-1], weight.shape[1]), element, name, attrs=layout_free(weight))


def product_of_bfloats(x: Tensor, weight: Tensor, name: str) -> Tensor:
    """Declare `product_of_pairs` of numbers (..., K) that the same kernel computes."""
    k = reduce_axis(x.shape[-1], "rk")

    def element(*i: Expression) -> Reduction:
        shift = (k % 2 * 16).astype(DType.INT32)
        half = functions.call("bit_and", functions.call("shift_right", weight[k // 2, i[-1]], shift), _LOWER)
        number = dot_of_pairs(half, functions.const(_ONE, DType.INT32))
        return functions.sum(x[(*i[:-1], k.expression)].astype(DType.FLOAT32) * number, k)

    return compute((*x.shape[:-1], weight.shape[1]), element, name)
