"""The layouts of attention: with products of warps on tensor cores, and without."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import (
    Arith,
    ArithOp,
    Buffer,
    For,
    Load,
    LoopVar,
    MemoryScope,
    Mma,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.warp import MMA_COLUMNS, MMA_ROW_ALIGNMENT, MMA_ROWS, MMA_SUMS, WARP
from intarsia.native.emission.types import stored_bytes
from intarsia.native.gpu.attention_layout import AttentionLayout, AttentionTiles, ThreadElement
from intarsia.native.gpu.index_scalars import div, for_each, mod, number, plus, times

_THREAD: Final = LoopVar("thread")
_STEP: Final = LoopVar("step")
_SHARES: Final = 8
"""Number of threads that share a row of a kernel without tensor cores."""
_THREADS: Final = 128
_QUAD: Final = 4
"""Number of threads that share a row of a product of a warp."""
_PLAIN_TILES: Final = ((4, 32), (2, 32), (2, 16), (1, 32), (1, 16), (1, 8))
"""Numbers of rows of a thread and of keys of a tile that are tried, largest first."""
_WARP_TILES: Final = ((4, 64), (4, 32), (2, 64), (2, 32), (1, 64), (1, 32), (1, 16))
"""Numbers of warps of a block and of keys of a tile that are tried, largest first."""
_MOST_SUMS: Final = 64
"""Maximum number of sums of a thread: as many scores and more are in its 255 registers beside them."""


@dataclass(frozen=True, slots=True)
class PlainLayout:
    """Eight threads share some neighbouring rows, and take every eighth key and column.

    Attributes:
        rows_of_thread: Number of rows of a thread.
        keys: Number of keys of a tile, a multiple of 8.
        depth: Number of elements of a query.
        columns: Number of elements of a value.
    """

    rows_of_thread: int
    keys: int
    depth: int
    columns: int
    thread: LoopVar = _THREAD
    threads: int = _THREADS
    shares: int = _SHARES

    @property
    def rows(self) -> int:
        """As in `AttentionLayout`."""
        return self.threads // self.shares * self.rows_of_thread

    @property
    def share(self) -> Scalar:
        """As in `AttentionLayout`."""
        return mod(self.thread, self.shares)

    @property
    def scores_shape(self) -> tuple[int, ...]:
        """As in `AttentionLayout`."""
        return self.rows_of_thread, self.keys // self.shares

    @property
    def sums_shape(self) -> tuple[int, ...]:
        """As in `AttentionLayout`."""
        return self.rows_of_thread, -(-self.columns // self.shares)

    def row(self, at: Scalar) -> Scalar:
        """As in `AttentionLayout`."""
        return plus(times(div(self.thread, self.shares), self.rows_of_thread), at)

    def key(self, at: Scalar) -> Scalar:
        """As in `AttentionLayout`."""
        return plus(times(at, self.shares), self.share)

    def column(self, at: Scalar) -> Scalar:
        """As in `AttentionLayout`."""
        return self.key(at)

    def score_at(self, at: tuple[Scalar, ...]) -> ThreadElement:
        """As in `AttentionLayout`."""
        return ThreadElement(*at)

    def sum_at(self, at: tuple[Scalar, ...]) -> ThreadElement:
        """As in `AttentionLayout`."""
        return ThreadElement(*at)

    def scores_of(self, row: int) -> list[tuple[Scalar, ...]]:
        """As in `AttentionLayout`."""
        return [(number(row), number(column)) for column in range(self.scores_shape[1])]

    def sums_of(self, row: int) -> list[tuple[Scalar, ...]]:
        """As in `AttentionLayout`."""
        return [(number(row), number(column)) for column in range(self.sums_shape[1])]

    def tiles(self) -> AttentionTiles:
        """As in `AttentionLayout`."""
        columns = self.sums_shape[1] * self.shares
        return AttentionTiles(
            _shared("queries.tile", (self.rows, self.depth), DType.FLOAT32),
            _shared("keys.tile", (self.keys, self.depth), DType.FLOAT32),
            _shared("values.tile", (self.keys, columns), DType.FLOAT32),
            _shared("weights.tile", (self.rows, self.keys), DType.FLOAT32),
            _shared("parts.tile", (self.rows, self.shares), DType.FLOAT32),
        )

    def filled_extents(self, tile: Buffer) -> tuple[int, int]:
        """As in `AttentionLayout`."""
        rows, columns = tile.shape
        return rows, columns

    def scores(self, scores: Buffer, tiles: AttentionTiles) -> Statement:
        """As in `AttentionLayout`."""

        def added(at: tuple[Scalar, ...]) -> Statement:
            query = Load(tiles.queries, (self.row(at[0]), _STEP))
            return _added(scores, at, query, Load(tiles.keys, (self.key(at[1]), _STEP)))

        return For(_STEP, self.depth, for_each(scores.shape, added))

    def weighted_sums(self, sums: Buffer, tiles: AttentionTiles) -> Statement:
        """As in `AttentionLayout`."""

        def added(at: tuple[Scalar, ...]) -> Statement:
            weight = Load(tiles.weights, (self.row(at[0]), _STEP))
            return _added(sums, at, weight, Load(tiles.values, (_STEP, self.column(at[1]))))

        return For(_STEP, self.keys, for_each(sums.shape, added))


@dataclass(frozen=True, slots=True)
class WarpLayout:
    """A warp has 16 rows, whose products it computes on tensor cores.

    Attributes:
        warps: Number of warps of a block.
        keys: Number of keys of a tile, a multiple of 16.
        depth: Number of elements of a query.
        columns: Number of elements of a value.
        dtype: Element type of the tiles, float16 or bfloat16.
    """

    warps: int
    keys: int
    depth: int
    columns: int
    dtype: DType
    thread: LoopVar = _THREAD
    shares: int = _QUAD
    rows_of_thread: int = 2

    @property
    def threads(self) -> int:
        """As in `AttentionLayout`."""
        return self.warps * WARP

    @property
    def rows(self) -> int:
        """As in `AttentionLayout`."""
        return self.warps * MMA_ROWS

    @property
    def share(self) -> Scalar:
        """As in `AttentionLayout`."""
        return mod(self.thread, _QUAD)

    @property
    def scores_shape(self) -> tuple[int, ...]:
        """As in `AttentionLayout`."""
        return self.keys // MMA_COLUMNS, MMA_SUMS

    @property
    def sums_shape(self) -> tuple[int, ...]:
        """As in `AttentionLayout`."""
        return -(-self.columns // MMA_COLUMNS), MMA_SUMS

    def row(self, at: Scalar) -> Scalar:
        """As in `AttentionLayout`."""
        first = times(div(self.thread, WARP), MMA_ROWS)
        return plus(plus(first, div(mod(self.thread, WARP), _QUAD)), times(at, MMA_ROWS // 2))

    def key(self, at: Scalar) -> Scalar:
        """As in `AttentionLayout`."""
        return plus(plus(times(div(at, 2), MMA_COLUMNS), times(self.share, 2)), mod(at, 2))

    def column(self, at: Scalar) -> Scalar:
        """As in `AttentionLayout`."""
        return self.key(at)

    def score_at(self, at: tuple[Scalar, ...]) -> ThreadElement:
        """As in `AttentionLayout`."""
        tile, element = at
        return ThreadElement(div(element, 2), plus(times(tile, 2), mod(element, 2)))

    def sum_at(self, at: tuple[Scalar, ...]) -> ThreadElement:
        """As in `AttentionLayout`."""
        return self.score_at(at)

    def scores_of(self, row: int) -> list[tuple[Scalar, ...]]:
        """As in `AttentionLayout`."""
        return self._of_row(self.scores_shape[0], row)

    def sums_of(self, row: int) -> list[tuple[Scalar, ...]]:
        """As in `AttentionLayout`."""
        return self._of_row(self.sums_shape[0], row)

    def _of_row(self, tiles: int, row: int) -> list[tuple[Scalar, ...]]:
        elements = (2 * row, 2 * row + 1)
        return [(number(tile), number(element)) for tile in range(tiles) for element in elements]

    def tiles(self) -> AttentionTiles:
        """As in `AttentionLayout`."""
        depth, columns = self._whole_depth, self.sums_shape[0] * MMA_COLUMNS
        pad = MMA_ROW_ALIGNMENT // self.dtype.numpy.itemsize
        return AttentionTiles(
            _shared("queries.tile", (self.rows, depth + pad), self.dtype),
            _shared("keys.tile", (self.keys, depth + pad), self.dtype),
            _shared("values.tile", (self.keys, columns + pad), self.dtype),
            _shared("weights.tile", (self.rows, self.keys + pad), self.dtype),
            _shared("parts.tile", (self.rows, self.shares), DType.FLOAT32),
        )

    @property
    def _whole_depth(self) -> int:
        step = 32 // self.dtype.numpy.itemsize
        return -(-self.depth // step) * step

    def filled_extents(self, tile: Buffer) -> tuple[int, int]:
        """As in `AttentionLayout`."""
        rows, columns = tile.shape
        return rows, columns - MMA_ROW_ALIGNMENT // self.dtype.numpy.itemsize

    def scores(self, scores: Buffer, tiles: AttentionTiles) -> Statement:
        """As in `AttentionLayout`."""
        return self._products(scores, tiles.queries, tiles.keys, self._whole_depth, is_transposed=True)

    def weighted_sums(self, sums: Buffer, tiles: AttentionTiles) -> Statement:
        """As in `AttentionLayout`."""
        return self._products(sums, tiles.weights, tiles.values, self.keys, is_transposed=False)

    def _products(
        self, sums: Buffer, left: Buffer, right: Buffer, depth: int, *, is_transposed: bool
    ) -> Statement:
        step = 32 // self.dtype.numpy.itemsize
        first_row = times(div(self.thread, WARP), MMA_ROWS)

        def multiplied(at: tuple[Scalar, ...]) -> Statement:
            part, tile = at
            inner, column = times(part, step), times(tile, MMA_COLUMNS)
            corner = (column, inner) if is_transposed else (inner, column)
            return Mma(
                Load(sums, (tile, number(0))),
                Load(left, (first_row, inner)),
                Load(right, corner),
                is_transposed,
            )

        return for_each((depth // step, sums.shape[0]), multiplied)


def choose_layout(
    rows: int, keys: int, depth: int, columns: int, dtype: DType, shared_bytes: int
) -> AttentionLayout | None:
    """Return the layout of the most rows whose tiles fit into shared memory; None if none does.

    Args:
        rows: Number of queries.
        keys: Number of keys.
        depth: Number of elements of a query.
        columns: Number of elements of a value.
        dtype: Element type of the tiles; float32 has no tensor cores.
        shared_bytes: Size of shared memory of a block in bytes.
    """
    candidates: list[AttentionLayout]
    if dtype is DType.FLOAT32:
        candidates = [PlainLayout(count, tile, depth, columns) for count, tile in _PLAIN_TILES]
    else:
        candidates = [WarpLayout(warps, tile, depth, columns, dtype) for warps, tile in _WARP_TILES]
    fitting = [
        layout
        for layout in candidates
        if sum(map(_bytes, layout.tiles())) <= shared_bytes and prod(layout.sums_shape) <= _MOST_SUMS
    ]
    # Rows and keys that are not there are computed in vain: less than half, but for the smallest tiles.
    suited = [layout for layout in fitting if layout.rows < 2 * rows and layout.keys < 2 * keys]
    return next(iter(suited), fitting[-1] if fitting else None)


def _bytes(buffer: Buffer) -> int:
    return prod(buffer.shape) * stored_bytes(buffer.dtype)


def _shared(name: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
    return Buffer(name, shape, dtype, MemoryScope.SHARED)


def _added(buffer: Buffer, at: tuple[Scalar, ...], left: Scalar, right: Scalar) -> Statement:
    total = Arith(ArithOp.ADD, (Load(buffer, at), Arith(ArithOp.MUL, (left, right))))
    return Store(buffer, at, total)
