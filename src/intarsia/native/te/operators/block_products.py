"""Products with constant weights of 4 or 8 bits, whose blocks along the sum have scales of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.op_attrs import BLOCK_SUMS
from intarsia.native.te.operators.digit_products import digit_sums
from intarsia.native.te.tensor import Tensor

_WORD_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class BlockedWeight:
    """The constants of a weight matrix (K, N) of few bits, in panels of columns.

    Attributes:
        words: Words (panels, words of a column, columns of a panel), int32; the first number of a word is in
            its lowest bits.
        scale: Scales (panels, blocks, columns of a panel), float32.
        offset: Products of scale and zero point likewise, less those of scale and middle; None where these
            are equal.
        bits: Bits of a number, which is unsigned.
        middle: Number to subtract from numbers before they are multiplied.
        columns: Number N of columns; those of the last panel beyond it are 0.
        has_digits: Whether sums are of bytes, the left matrix being three digits of its numbers.
    """

    words: Tensor
    scale: Tensor
    offset: Tensor | None
    bits: int
    middle: int
    columns: int
    has_digits: bool = False

    @property
    def numbers(self) -> int:
        """Number of numbers of a word."""
        return _WORD_BITS // self.bits

    @property
    def depth(self) -> int:
        """Number of numbers of a column."""
        return self.words.shape[1] * self.numbers


def block_product(x: Tensor, weight: BlockedWeight, name: str) -> Tensor:
    """Declare a product (..., K) times (K, N) in float32: sums of blocks first, then their multiples.

    Args:
        x: Left matrix in float32; K may be less than the depth of the weights, whose rest is 0.
        weight: Right matrix.
        name: Name of the operation.
    """
    rows, lanes = x.shape[:-1], weight.words.shape[2]
    padded = _padded(x, weight.depth, f"{name}.padded")
    sums = _sums(padded, weight, name)

    def element(*i: Expression) -> Expression:
        return sums[(*i[:-1], i[-1] // lanes, i[-1] % lanes)]

    return compute((*rows, weight.columns), element, name)


def _sums(x: Tensor, weight: BlockedWeight, name: str) -> Tensor:
    """Declare the product (..., panels, columns of a panel)."""
    panels, blocks, lanes = weight.scale.shape
    offset = weight.offset
    totals = None if offset is None else _row_sums(x, blocks, f"{name}.total")
    if weight.has_digits:
        beyond = None if totals is None or offset is None else (totals, offset)
        return digit_sums(x, weight.words, weight.scale, beyond, weight.middle, name)
    parts = _sums_of_blocks(x, weight, f"{name}.part")
    b = reduce_axis(blocks, "rb")

    def element(*i: Expression) -> Reduction:
        *row, panel, lane = i
        value = parts[(*row, panel, b, lane)] * weight.scale[panel, b, lane]
        if totals is None or offset is None:
            return functions.sum(value, b)
        return functions.sum(value - totals[(*row, b)] * offset[panel, b, lane], b)

    shape = (*x.shape[:-1], panels, lanes)
    return compute(shape, element, f"{name}.sums", _axis_names(x, "pv"), {BLOCK_SUMS: 1})


def _sums_of_blocks(x: Tensor, weight: BlockedWeight, name: str) -> Tensor:
    """Declare the sums (..., panels, blocks, columns of a panel) of products with plain numbers."""
    panels, blocks, lanes = weight.scale.shape
    words = weight.words.shape[1] // blocks
    w, j = reduce_axis(words, "rw"), reduce_axis(weight.numbers, "rj")

    def element(*i: Expression) -> Reduction:
        *row, panel, block, lane = i
        word = block * words + w.expression
        number = _number(weight.words[panel, word, lane], j.expression, weight)
        return functions.sum(x[(*row, word * weight.numbers + j.expression)] * number, (w, j))

    return compute((*x.shape[:-1], panels, blocks, lanes), element, name, _axis_names(x, "pbv"))


def _number(word: Expression, position: Expression, weight: BlockedWeight) -> Expression:
    """Return the number at a position of a word less the middle, in float32."""
    lowest = functions.call("shift_right", word, (position * weight.bits).astype(DType.INT32))
    number = functions.call("bit_and", lowest, (1 << weight.bits) - 1)
    return (number - functions.const(weight.middle, DType.INT32)).astype(DType.FLOAT32)


def _row_sums(x: Tensor, blocks: int, name: str) -> Tensor:
    """Declare the sums (..., blocks) of the numbers of a row."""
    size = x.shape[-1] // blocks
    k = reduce_axis(size, "rk")
    return compute(
        (*x.shape[:-1], blocks), lambda *i: functions.sum(x[(*i[:-1], i[-1] * size + k.expression)], k), name
    )


def _padded(x: Tensor, depth: int, name: str) -> Tensor:
    """Return a matrix with zeros behind each row, up to a number of elements."""
    given = x.shape[-1]
    if given == depth:
        return x

    def element(*i: Expression) -> Expression:
        return functions.if_then_else(i[-1] < given, x[i], 0.0)

    return compute((*x.shape[:-1], depth), element, name)


def _axis_names(x: Tensor, letters: str) -> Sequence[str]:
    return (*(f"r{axis}" for axis in range(len(x.shape) - 1)), *letters)
