"""Which elements of both factors a thread of a warp multiplies, and which ones it loads for the others."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Mma
from intarsia.ir.warp import MMA_COLUMNS, MMA_ROW_ALIGNMENT, MMA_ROWS, MMA_SUMS, WARP

Products = tuple[tuple[int, int], ...]
"""Offsets of both factors of the products that one sum grows by."""


class TileShape(NamedTuple):
    """A tile of a factor in memory.

    Attributes:
        rows: Number of rows.
        columns: Number of columns.
        stride: Offset of the next row, in elements.
    """

    rows: int
    columns: int
    stride: int

    def share(self, lane: int) -> list[int]:
        """Return the offsets of the elements that are one thread's if all threads have as many."""
        count = self.rows * self.columns // WARP
        numbers = range(lane * count, (lane + 1) * count)
        return [number // self.columns * self.stride + number % self.columns for number in numbers]


class MmaSite(NamedTuple):
    """What all products of one statement have in common.

    Attributes:
        number: Identity of the statement.
        depth: Number of columns of the left tile.
        left: Tile of the left factor.
        right: Tile of the right factor.
        is_right_transposed: Whether the rows of the right tile are columns of the factor.
        alignment: Number of elements that the offset of a row is a multiple of.
        has_words: Whether elements are words of two bfloat16.
        has_bytes: Whether elements are words of four bytes; then sums are integers.
        is_left_signed: Whether bytes of the left tile are the signed ones.
    """

    number: int
    depth: int
    left: TileShape
    right: TileShape
    is_right_transposed: bool
    alignment: int
    has_words: bool
    has_bytes: bool
    is_left_signed: bool

    @classmethod
    def of(cls, mma: Mma) -> MmaSite:
        """Return the site of a statement that passes `verify`."""
        left, right, depth = mma.left.buffer, mma.right.buffer, mma.depth
        sides = (MMA_COLUMNS, depth) if mma.is_right_transposed else (depth, MMA_COLUMNS)
        return cls(
            id(mma),
            depth,
            TileShape(MMA_ROWS, depth, left.shape[-1]),
            TileShape(*sides, right.shape[-1]),
            mma.is_right_transposed,
            MMA_ROW_ALIGNMENT // left.dtype.numpy.itemsize,
            left.dtype is DType.INT32 and mma.sums.buffer.dtype is DType.FLOAT32,
            mma.sums.buffer.dtype is DType.INT32,
            mma.is_left_signed,
        )


@lru_cache(4096)
def products_of_thread(site: MmaSite, lane: int) -> tuple[Products, ...]:
    """Return the products of each of a thread's sums, as offsets from the first elements of both tiles.

    Args:
        site: The statement.
        lane: Number of the thread in its warp.
    """
    products = []
    for element in range(MMA_SUMS):
        row, column = row_of_sum(lane, element), column_of_sum(lane, element)
        pairs = []
        for step in range(site.depth):
            first, second = (column, step) if site.is_right_transposed else (step, column)
            pairs.append((row * site.left.stride + step, first * site.right.stride + second))
        products.append(tuple(pairs))
    return tuple(products)


def row_of_sum(lane: int, element: int) -> int:
    """Return the row of a thread's sum in the tile of sums."""
    return lane // 4 + 8 * (element // 2)


def column_of_sum(lane: int, element: int) -> int:
    """Return the column of a thread's sum in the tile of sums."""
    return lane % 4 * 2 + element % 2


@lru_cache(4096)
def elements_of_thread(site: MmaSite, lane: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the offsets of the elements of both tiles that a thread multiplies, or loads for the warp.

    Args:
        site: The statement.
        lane: Number of the thread in its warp.
    """
    left, right = set(site.left.share(lane)), set(site.right.share(lane))
    for products in products_of_thread(site, lane):
        left |= {first for first, _ in products}
        right |= {second for _, second in products}
    return tuple(sorted(left)), tuple(sorted(right))
