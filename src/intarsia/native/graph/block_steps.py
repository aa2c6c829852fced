"""Products with constant weights of 4 or 8 bits in blocks as steps, and their declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.native.graph.region_plan import Array
from intarsia.native.graph.step_declaration import StepDeclaration
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import Tensor, compute
from intarsia.native.te.operators.block_products import BlockedWeight, block_product

_WORD_BITS: Final = 32
_PLAIN_LANES: Final = 16
"""Columns of a panel where no machine sets the lanes of a vector."""
_MOST_VECTORS: Final = 8
"""Vectors of a panel of a product of one row: independent sums that hide the latency of a multiply-add."""
_VECTORS_OF_TILE: Final = 2
"""Vectors of a panel of a product of many rows."""
_MANY_ROWS: Final = 4
"""Rows from which on sums of several rows hide the latency."""
_DIGIT_BITS: Final = 4
_MOST_DIGIT_ROWS: Final = 8
"""Rows up to which sums of bytes take fewer instructions: with more, those of float32 share the unpacking."""
_LEAST_COLUMNS: Final = 256
"""Columns from which on cutting the left matrix into digits is little beside the product."""
_VECTORS_OF_DIGITS: Final = 4
"""Vectors of a panel of a product of one row by digits: their sums of three digits stay in registers."""
_MOST_WASTE: Final = 1.07
"""Maximum ratio of the weights that are read, with the padding of the last panel, to those of the program."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockMatrix:
    """A matrix (K, N) of few bits, each block of a column or row of which has its scale.

    Attributes:
        numbers: Unsigned numbers (K, N), uint8.
        scale: Scales (blocks, N) or (K, blocks), float32.
        zero: Zero points likewise, uint8.
        block: Numbers of a block; those of the last block may be fewer.
        bits: Bits of a number in memory.
        axis: Axis along which blocks follow each other.
    """

    numbers: Array
    scale: Array
    zero: Array
    block: int
    bits: int
    axis: int

    @property
    def transposed(self) -> BlockMatrix:
        """The transpose of the matrix."""
        return BlockMatrix(
            np.ascontiguousarray(self.numbers.T),
            np.ascontiguousarray(self.scale.T),
            np.ascontiguousarray(self.zero.T),
            self.block,
            self.bits,
            1 - self.axis,
        )

    @property
    def is_packable(self) -> bool:
        """Whether each column has its blocks, and each block has words of its own."""
        return self.axis == 0 and (len(self.scale) == 1 or self.block % (_WORD_BITS // self.bits) == 0)

    def packed_words(self, columns: int) -> Array:
        """Return words (panels, words of a column, columns of a panel) of the numbers, int32.

        Args:
            columns: Columns of a panel.
        """
        count, (depth, _) = _WORD_BITS // self.bits, self.numbers.shape
        rows = -(-len(self.scale) * self.block // count) * count
        parts = np.pad(self.numbers, ((0, rows - depth), (0, 0))).reshape(rows // count, count, -1)
        words = np.zeros((len(parts), parts.shape[2]), np.uint32)
        for position in range(count):
            words |= parts[:, position].astype(np.uint32) << np.uint32(position * self.bits)
        return _in_panels(words, columns).view(np.int32)

    def packed_scale(self, columns: int) -> Array:
        """Return the scales (panels, blocks, columns of a panel)."""
        return _in_panels(self.scale, columns)

    @property
    def middle(self) -> int:
        """The zero point of all numbers; where they have several, the middle of their range."""
        first = self.zero.flat[0]
        return int(first) if (self.zero == first).all() else 1 << (self.bits - 1)

    def packed_offset(self, columns: int) -> Array | None:
        """Return products of scales and of zero points less the middle, in panels; None where all are 0."""
        beyond = self.zero.astype(np.float32) - np.float32(self.middle)
        return _in_panels(self.scale * beyond, columns) if beyond.any() else None


@dataclass(frozen=True, slots=True, eq=False)
class BlockStep(KernelStep):
    """A product of float32 by a `BlockMatrix`.

    The call is that of the operator; `args` are the left matrix, and the words of the right one.

    Attributes:
        scale: Packed scales.
        offset: Packed offset; None for none.
        bits: Bits of a number.
        middle: Number to subtract from numbers.
        columns: Columns of the product.
        bias: Bias of each column, float32; None for none.
        has_digits: Whether sums are of bytes, the left matrix being digits of its numbers.
    """

    scale: Array
    offset: Array | None
    bits: int
    middle: int
    columns: int
    bias: Array | None
    has_digits: bool = False


def _in_panels(array: Array, columns: int) -> Array:
    """Return a matrix in panels of columns, the last one with zeros behind."""
    padded = np.pad(array, ((0, 0), (0, -array.shape[1] % columns)))
    return np.ascontiguousarray(padded.reshape(len(array), -1, columns).transpose(1, 0, 2))


def sums_digits(matrix: BlockMatrix, rows: int) -> bool:
    """Return whether products of few rows sum bytes, on a machine with an instruction for that."""
    return (
        matrix.bits == _DIGIT_BITS and rows <= _MOST_DIGIT_ROWS and matrix.numbers.shape[1] >= _LEAST_COLUMNS
    )


def panel_columns(columns: int, rows: int, lanes: int, *, has_digits: bool = False) -> int:
    """Return the columns of a panel.

    Args:
        columns: Columns of the product.
        rows: Rows of the product.
        lanes: Lanes of a vector; 0 if unknown.
        has_digits: Whether each sum is three sums of bytes.
    """
    width = lanes or _PLAIN_LANES
    vectors = _MOST_VECTORS if rows < _MANY_ROWS else _VECTORS_OF_TILE
    if has_digits:
        vectors = _VECTORS_OF_DIGITS if rows == 1 else _VECTORS_OF_TILE
    while vectors > 1 and -(-columns // (width * vectors)) * width * vectors > _MOST_WASTE * columns:
        vectors //= 2
    return width * vectors


@dataclass(eq=False)
class PlainBlocks(StepDeclaration):
    """Declares a product with weights of few bits on plain tensors."""

    step: BlockStep

    def result(self) -> Tensor:
        """Declare the result, and record its placeholders."""
        step = self.step
        weight = BlockedWeight(
            self.read(1, is_constant=True),
            self.constant(step.scale),
            None if step.offset is None else self.constant(step.offset),
            step.bits,
            step.middle,
            step.columns,
            step.has_digits,
        )
        name = self.name if step.bias is None else f"{self.name}.product"
        product = block_product(self.tensor_of(0), weight, name)
        if step.bias is None:
            return product
        bias = self.constant(step.bias)
        return compute(product.shape, lambda *i: product[i] + bias[i[-1]], self.name)
