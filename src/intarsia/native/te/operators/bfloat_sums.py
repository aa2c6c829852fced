"""Sums of products of bfloat16 numbers in float32, by words of two."""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.batched_words import leading_indices
from intarsia.native.te.operators.convolution import layout_free
from intarsia.native.te.tensor import Tensor

_ONE: Final = 0x3F80
"""Bits of 1 in bfloat16."""
_LOWER: Final = 0xFFFF
_PAIR: Final = 2
"""Numbers of a word."""


def dot_of_pairs(left: Expression, right: Expression) -> Expression:
    """Return the sum of products of the two bfloat16 numbers of two words, in float32."""
    return functions.call("dot_bf16", left, right)


def product_of_pairs(x: Tensor, weight: Tensor, name: str) -> Tensor:
    """Declare a product (..., K / 2) times (K / 2, N) of words of two numbers, in float32."""
    k = reduce_axis(weight.shape[0], "rk")

    def element(*i: Expression) -> Reduction:
        return functions.sum(dot_of_pairs(x[(*i[:-1], k.expression)], weight[k, i[-1]]), k)

    return compute((*x.shape[:-1], weight.shape[1]), element, name, attrs=layout_free(weight))


def product_of_matrices(left: Tensor, right: Tensor, name: str) -> Tensor:
    """Declare a product (..., M, K) times (..., K, N) of words of two numbers, in float32.

    Leading dimensions are broadcast.
    """
    leading = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*map(int, leading), left.shape[-2], right.shape[-1])
    k = reduce_axis(left.shape[-1], "rk")

    def element(*i: Expression) -> Reduction:
        word = left[(*leading_indices(left, i[:-2], 2), i[-2], k.expression)]
        other = right[(*leading_indices(right, i[:-2], 2), k.expression, i[-1])]
        return functions.sum(dot_of_pairs(word, other), k)

    return compute(shape, element, name)


def pairs_of_rows(x: Tensor, name: str) -> Tensor:
    """Declare words (..., M, K / 2) of two neighbours of numbers (..., M, K), rounded; 0 is behind K."""
    depth = x.shape[-1]

    def element(*i: Expression) -> Expression:
        numbers = (x[(*i[:-1], i[-1] * _PAIR)], x[(*i[:-1], i[-1] * _PAIR + 1)])
        return _pair(*numbers, i[-1] * _PAIR + 1 < depth if depth % _PAIR else None)

    return compute((*x.shape[:-1], -(-depth // _PAIR)), element, name)


def pairs_of_columns(x: Tensor, name: str) -> Tensor:
    """Declare words (..., K / 2, N) of two neighbours of a column of numbers (..., K, N), likewise."""
    *leading, depth, columns = x.shape

    def element(*i: Expression) -> Expression:
        numbers = (x[(*i[:-2], i[-2] * _PAIR, i[-1])], x[(*i[:-2], i[-2] * _PAIR + 1, i[-1])])
        return _pair(*numbers, i[-2] * _PAIR + 1 < depth if depth % _PAIR else None)

    return compute((*leading, -(-depth // _PAIR), columns), element, name)


def _pair(low: Expression, high: Expression, has_high: Expression | None) -> Expression:
    """Return the word of two numbers; the upper one is 0 where it is behind the sum."""
    low, high = low.astype(DType.FLOAT32), high.astype(DType.FLOAT32)
    if has_high is not None:
        high = functions.if_then_else(has_high, high, functions.const(0.0))
    return functions.call("pair_bf16", low, high)


def product_of_bfloats(x: Tensor, weight: Tensor, name: str) -> Tensor:
    """Declare `product_of_pairs` of numbers (..., K) that the same kernel computes."""
    k = reduce_axis(x.shape[-1], "rk")

    def element(*i: Expression) -> Reduction:
        shift = (k % 2 * 16).astype(DType.INT32)
        half = functions.call("bit_and", functions.call("shift_right", weight[k // 2, i[-1]], shift), _LOWER)
        number = dot_of_pairs(half, functions.const(_ONE, DType.INT32))
        return functions.sum(x[(*i[:-1], k.expression)].astype(DType.FLOAT32) * number, k)

    return compute((*x.shape[:-1], weight.shape[1]), element, name)
