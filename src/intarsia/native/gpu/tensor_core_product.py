"""Kernels of matrix products on tensor cores: tiles of both factors in shared memory, products of warps.

A block computes a tile of the result. Its threads fill tiles of both factors, a step of the reduction at a
time, with zeros where the factors end. Each warp multiplies tiles of 16 rows and 8 columns, whose sums its
threads keep in registers, and stores what becomes of them. Rows of the tiles in shared memory have some bytes
more than they hold, so that the rows that one instruction loads lie in different banks.

`with_copies_ahead` makes kernels of these that fill their tiles in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd, prod
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Barrier,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Mma,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.warp import MMA_COLUMNS, MMA_ROW_ALIGNMENT, MMA_ROWS, MMA_SUMS, WARP
from intarsia.native.gpu.index_scalars import div, for_each, less, mod, number, plus, times, unflattened
from intarsia.native.tir.plain_threads import column_of_sum, row_of_sum
from intarsia.native.tir.rewriting import block

_STEP_BYTES: Final = 64
"""Size of a row of a step's tile of the left factor in bytes."""
_COPY_BYTES: Final = 16
"""Size of the widest copy from memory into shared memory."""
_BLOCK, _THREAD = LoopVar("block"), LoopVar("thread")


@dataclass(frozen=True, slots=True)
class WarpTiling:
    """The tile of a block, and that of each of its warps.

    Attributes:
        rows: Number of rows of the block's tile.
        columns: Number of its columns.
        warp_rows: Number of rows of a warp's tile, a multiple of 16.
        warp_columns: Number of columns of a warp's tile, a multiple of 8.
    """

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int

    @property
    def warps_along(self) -> int:
        """Number of warps that share rows."""
        return self.columns // self.warp_columns

    @property
    def threads(self) -> int:
        """Number of threads of a block."""
        return WARP * (self.rows // self.warp_rows) * self.warps_along


TILINGS: Final = (WarpTiling(128, 128, 64, 32), WarpTiling(64, 64, 32, 32), WarpTiling(32, 64, 16, 32))
"""Tilings that are tried, largest first: large ones load less, small ones leave more blocks."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of a product.

    Attributes:
        buffer: Its buffer, of a type that `Mma` multiplies.
        outer: Function from the number of a matrix of the result, as indices, to the indices before the last
            two.
        is_transposed: Whether the last index is that of a column of the result, and not the reduced one; of
            the left factor it is the reduced one.
        limits: Extents of its matrices; those of the buffer's last two dimensions if not given.
        value: Function from the number of a matrix, as indices, and two indices in it to the element, where
            that is more than an element of the buffer; elements are filled one by one then.
    """

    buffer: Buffer
    outer: Callable[[Sequence[Scalar]], Sequence[Scalar]]
    is_transposed: bool = False
    limits: tuple[int, int] | None = None
    value: Callable[[Sequence[Scalar], Scalar, Scalar], Scalar] | None = None


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """A product of matrices.

    Attributes:
        shape: Extents of the result; the last two are those of its matrices.
        depth: Number of products that each sum is of.
        left: Left factor, whose last indices are row and reduction.
        right: Right factor, whose last indices are reduction and column, or these transposed.
        finish: Function from a sum and its indices to the statement that stores what becomes of it.
        sum_dtype: Type of the sums; in int32, elements of factors are words of four bytes.
        is_left_signed: Whether bytes of the left factor are the signed ones, and not those of the right one.
    """

    shape: tuple[int, ...]
    depth: int
    left: Factor
    right: Factor
    finish: Callable[[Scalar, Sequence[Scalar]], Statement]
    sum_dtype: DType = DType.FLOAT32
    is_left_signed: bool = False


def tensor_core_product(product: MatrixProduct, tiling: WarpTiling) -> Statement:
    """Return the kernel of a product."""
    return _Kernel(product, tiling).statement()


@dataclass(frozen=True, slots=True)
class _Tile:
    """A tile of a factor in shared memory.

    Attributes:
        buffer: Its buffer, with padding behind each row.
        columns: Number of elements of a row, without padding.
        limits: Extents of the factor's last two dimensions.
        starts: Indices of the tile's first element in them.
        outer: Indices before them.
        source: Buffer of the factor.
        value: Function from two indices to the element; None for an element of the buffer.
    """

    buffer: Buffer
    columns: int
    limits: tuple[int, int]
    starts: tuple[Scalar, Scalar]
    outer: tuple[Scalar, ...]
    source: Buffer
    value: Callable[[Scalar, Scalar], Scalar] | None = None

    def element(self, row: Scalar, column: Scalar) -> Scalar:
        """Return the element at two indices of the factor."""
        if self.value is not None:
            return self.value(row, column)
        return Load(self.source, (*self.outer, row, column))


@dataclass(slots=True)
class _Kernel:
    product: MatrixProduct
    tiling: WarpTiling

    @property
    def _dtype(self) -> DType:
        return self.product.left.buffer.dtype

    @property
    def _step(self) -> int:
        return _STEP_BYTES // self._dtype.numpy.itemsize

    @property
    def _pad(self) -> int:
        return MMA_ROW_ALIGNMENT // self._dtype.numpy.itemsize

    @property
    def _mma_depth(self) -> int:
        return 32 // self._dtype.numpy.itemsize

    def statement(self) -> Statement:
        """Return the loop over the blocks."""
        *outer, rows, columns = self.product.shape
        down, along = -(-rows // self.tiling.rows), -(-columns // self.tiling.columns)
        row = times(mod(div(_BLOCK, along), down), self.tiling.rows)
        column = times(mod(_BLOCK, along), self.tiling.columns)
        matrix = unflattened(div(_BLOCK, down * along), outer)
        left, right = self._left(matrix, row), self._right(matrix, column)
        sums = Buffer("sums", (*self._sums_shape(), MMA_SUMS), self.product.sum_dtype, MemoryScope.REGISTER)
        steps = -(-self.product.depth // self._step)
        filled = [self._filled(tile) for tile in (left, right)]
        computed = self._products(left, right, sums)
        step = For(LoopVar("step"), steps, block([Barrier(), *filled, Barrier(), computed]))
        body = block([self._cleared(sums), step, self._stored(sums, matrix, row, column)])
        threads = For(_THREAD, self.tiling.threads, Allocate(sums, body), ForKind.THREAD)
        shared = Allocate(left.buffer, Allocate(right.buffer, threads))
        return For(_BLOCK, prod(outer) * down * along, shared, ForKind.BLOCK)

    def _sums_shape(self) -> tuple[int, int]:
        return self.tiling.warp_rows // MMA_ROWS, self.tiling.warp_columns // MMA_COLUMNS

    def _left(self, matrix: Sequence[Scalar], row: Scalar) -> _Tile:
        factor = self.product.left
        shape = (self.tiling.rows, self._step + self._pad)
        starts = row, times(LoopVar("step"), self._step)
        return self._tile("left", factor, shape, self._step, starts, matrix)

    def _right(self, matrix: Sequence[Scalar], column: Scalar) -> _Tile:
        factor, step = self.product.right, times(LoopVar("step"), self._step)
        if factor.is_transposed:
            shape = (self.tiling.columns, self._step + self._pad)
            return self._tile("right", factor, shape, self._step, (column, step), matrix)
        # A thread loads elements of 4 bytes one by one, from rows of the reduction twice as far apart.
        pad = self._pad * (2 if self._dtype.numpy.itemsize == 4 else 1)
        shape = (self._step, self.tiling.columns + pad)
        return self._tile("right", factor, shape, self.tiling.columns, (step, column), matrix)

    def _tile(
        self,
        name: str,
        factor: Factor,
        shape: tuple[int, int],
        columns: int,
        starts: tuple[Scalar, Scalar],
        matrix: Sequence[Scalar],
    ) -> _Tile:
        buffer = Buffer(f"{name}.tile", shape, self._dtype, MemoryScope.SHARED)
        value = None if factor.value is None else partial(factor.value, matrix)
        limits = factor.limits or (factor.buffer.shape[-2], factor.buffer.shape[-1])
        return _Tile(buffer, columns, limits, starts, tuple(factor.outer(matrix)), factor.buffer, value)

    def _filled(self, tile: _Tile) -> Statement:
        """Return the statement that fills a tile, as many elements at once as rows are aligned for."""
        width = gcd(_COPY_BYTES // self._dtype.numpy.itemsize, tile.limits[1])
        width = width if tile.value is None else 1
        count, in_row = tile.buffer.shape[0] * tile.columns // width, tile.columns // width
        turns = -(-count // self.tiling.threads)
        turn, lane = LoopVar("turn"), LoopVar("lane")
        position = plus(times(turn, self.tiling.threads), _THREAD)
        row, first = div(position, in_row), times(mod(position, in_row), width)
        column = plus(first, lane) if width > 1 else first
        target = (row, column)
        source = (plus(tile.starts[0], row), plus(tile.starts[1], column))
        is_inside = Arith(
            ArithOp.AND,
            (
                less(source[0], tile.limits[0]),
                less(plus(tile.starts[1], first), tile.limits[1]),
            ),
        )
        copied = Store(tile.buffer, target, tile.element(*source))
        zero = Store(tile.buffer, target, Literal(0, self._dtype))
        body: Statement = IfThenElse(is_inside, copied, zero)
        if width > 1:
            body = For(lane, width, body, ForKind.VECTORIZED)
        if count % self.tiling.threads:
            body = IfThenElse(less(position, count), body)
        return For(turn, turns, body)

    def _cleared(self, sums: Buffer) -> Statement:
        def cleared(indices: tuple[Scalar, ...]) -> Statement:
            return Store(sums, indices, Literal(0, sums.dtype))

        return for_each(sums.shape, cleared)

    def _products(self, left: _Tile, right: _Tile, sums: Buffer) -> Statement:
        """Return the products of one step."""
        warp = div(_THREAD, WARP)
        row = times(div(warp, self.tiling.warps_along), self.tiling.warp_rows)
        column = times(mod(warp, self.tiling.warps_along), self.tiling.warp_columns)
        is_transposed = self.product.right.is_transposed

        def multiplied(indices: tuple[Scalar, ...]) -> Statement:
            part, down, along = indices
            depth = times(part, self._mma_depth)
            first_row = plus(row, times(down, MMA_ROWS))
            first_column = plus(column, times(along, MMA_COLUMNS))
            corner = (first_column, depth) if is_transposed else (depth, first_column)
            return Mma(
                Load(sums, (down, along, number(0))),
                Load(left.buffer, (first_row, depth)),
                Load(right.buffer, corner),
                is_transposed,
                self.product.is_left_signed,
            )

        return for_each((self._step // self._mma_depth, *self._sums_shape()), multiplied)

    def _stored(self, sums: Buffer, matrix: Sequence[Scalar], row: Scalar, column: Scalar) -> Statement:
        """Return the statement that stores what becomes of a thread's sums."""
        *_, rows, columns = self.product.shape
        warp = div(_THREAD, WARP)
        row = plus(row, times(div(warp, self.tiling.warps_along), self.tiling.warp_rows))
        column = plus(column, times(mod(warp, self.tiling.warps_along), self.tiling.warp_columns))

        # With an even number of columns, two neighbours are both inside or both not: one store writes both.
        together = 1 if columns % 2 else 2

        def stored(indices: tuple[Scalar, ...]) -> Statement:
            down, along = indices
            places = [
                (
                    plus(plus(row, times(down, MMA_ROWS)), row_of_sum(_THREAD, element)),
                    plus(plus(column, times(along, MMA_COLUMNS)), column_of_sum(_THREAD, element)),
                )
                for element in range(MMA_SUMS)
            ]
            stores = [
                self.product.finish(Load(sums, (down, along, number(element))), (*matrix, *places[element]))
                for element in range(MMA_SUMS)
            ]
            guarded = []
            for first in range(0, MMA_SUMS, together):
                is_inside = Arith(
                    ArithOp.AND, (less(places[first][0], rows), less(places[first][1], columns))
                )
                guarded.append(IfThenElse(is_inside, block(stores[first : first + together])))
            return block(guarded)

        return for_each(self._sums_shape(), stored)
