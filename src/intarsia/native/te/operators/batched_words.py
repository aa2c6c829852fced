"""Products of matrices of bytes, both of them computed, by words of four bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.integer_sums import dot, word_of
from intarsia.native.te.tensor import Tensor

_WORD: Final = 4
"""Bytes of a word."""
_HALF: Final = 128
"""Difference between the unsigned and the signed number of a byte with another highest bit."""

Zero: TypeAlias = int | Expression
"""A zero point that is known, or computed."""


def is_zero(zero: Zero) -> bool:
    """Return whether a zero point is known to be 0."""
    return isinstance(zero, int) and zero == 0


def batched_product(
    words: Tensor,
    left: Tensor | None,
    right: Tensor,
    zeros: tuple[Zero, Zero],
    scale: np.float32 | None,
    name: str,
) -> Tensor:
    """Declare the product of matrices less their zero points; leading dimensions are broadcast.

    Args:
        words: Words (..., M, K / 4) of unsigned bytes, with zeros behind K.
        left: Bytes (..., M, K) of these words; None where the right zero point is 0.
        right: Bytes (..., K, N), signed, or unsigned ones, which are taken less 128.
        zeros: Zero points of the left matrix, and of the right one as signed bytes.
        scale: Product of the scales, of a result in float32; None for the sums in int32.
        name: Name of the result.
    """
    depth, columns = right.shape[-2:]
    leading = np.broadcast_shapes(words.shape[:-2], right.shape[:-2])
    shape = (*map(int, leading), words.shape[-2], columns)
    packed = _words_of_columns(right, f"{name}.right")
    k = reduce_axis(packed.shape[-2], "rk")

    def element(*i: Expression) -> Reduction:
        word = words[(*leading_indices(words, i[:-2], 2), i[-2], k.expression)]
        return functions.sum(dot(word, packed[(*leading_indices(packed, i[:-2], 2), k.expression, i[-1])]), k)

    sums = compute(shape, element, f"{name}.sum")
    first, second = zeros
    of_columns = None if is_zero(first) else _sums_of_columns(right, f"{name}.columns")
    of_rows = None
    if not is_zero(second):
        assert left is not None, "sums of rows need the bytes"
        of_rows = _sums_of_rows(left, f"{name}.rows")

    def finished(*i: Expression) -> Expression:
        total = sums[i]
        if of_columns is not None:
            total = total - of_columns[(*leading_indices(of_columns, i[:-2], 1), i[-1])] * first
        if of_rows is not None:
            total = total - of_rows[(*leading_indices(of_rows, i[:-2], 1), i[-2])] * second
        if of_columns is not None and of_rows is not None:
            both = first * second if isinstance(first, Expression) else second * first
            total = total + both * depth
        return total if scale is None else total.astype(DType.FLOAT32) * float(scale)

    return compute(shape, finished, name)


def leading_indices(x: Tensor, leading: Sequence[Expression], rank: int) -> tuple[Expression | int, ...]:
    """Return the leading indices of the matrix of a tensor that broadcast indices belong to."""
    count = len(x.shape) - rank
    shared = leading[len(leading) - count :]
    return tuple(0 if extent == 1 else index for extent, index in zip(x.shape[:count], shared, strict=True))


def _words_of_columns(x: Tensor, name: str) -> Tensor:
    """Declare words (..., K / 4, N) of four signed bytes of a column."""
    *leading, depth, columns = x.shape
    is_unsigned = x.dtype is DType.UINT8

    def element(*i: Expression) -> Expression:
        word: Expression | None = None
        for number in range(_WORD):
            position = i[-2] * _WORD + number
            byte = x[(*i[:-2], position, i[-1])].astype(DType.UINT8).astype(DType.INT32)
            if depth % _WORD and number >= depth % _WORD:
                byte = functions.if_then_else(position < depth, byte, 0)
            if word is None:
                word = byte
                continue
            moved = functions.call("shift_left", byte, functions.const(8 * number, DType.INT32))
            word = functions.call("bit_or", word, moved)
        assert word is not None, "a word has bytes"
        flip = functions.const(word_of(_HALF), DType.INT32)
        return functions.call("bit_xor", word, flip) if is_unsigned else word

    return compute((*leading, -(-depth // _WORD), columns), element, name)


def _sums_of_columns(x: Tensor, name: str) -> Tensor:
    """Declare sums (..., N) of signed bytes."""
    *leading, depth, columns = x.shape
    k = reduce_axis(depth, "rk")
    half = _HALF if x.dtype is DType.UINT8 else 0

    def element(*i: Expression) -> Reduction:
        number = x[(*i[:-1], k.expression, i[-1])].astype(DType.INT32)
        return functions.sum(number - half if half else number, k)

    return compute((*leading, columns), element, name)


def _sums_of_rows(x: Tensor, name: str) -> Tensor:
    """Declare sums (..., M) of unsigned bytes."""
    k = reduce_axis(x.shape[-1], "rk")

    def element(*i: Expression) -> Reduction:
        return functions.sum(x[(*i, k.expression)].astype(DType.UINT8).astype(DType.INT32), k)

    return compute(x.shape[:-1], element, name)
