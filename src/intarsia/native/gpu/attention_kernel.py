"""Kernels of attention: softmax over tiles of keys, whose sums are rescaled (FlashAttention, NeurIPS 2022).

A block computes some rows of the result. Its threads hold the queries of these rows in shared memory, and go
through the keys a tile at a time:

    fill(keys, values); barrier; scores = queries * keys; largest of each row so far; barrier;
    sums and totals times exp(largest before - largest now); weights = exp(scores - largest); barrier;
    sums += weights * values; barrier;

So no scores are in memory. A row is shared by some threads, each of which has some of its columns: they
exchange their largest scores and, in the end, their totals by shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Barrier,
    Buffer,
    Cast,
    For,
    ForKind,
    IfThenElse,
    Intrinsic,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.gpu.attention_layout import AttentionLayout, AttentionTiles
from intarsia.native.gpu.index_scalars import div, for_each, less, mod, number, plus, times, unflattened
from intarsia.native.tir.rewriting import block

_BLOCK: Final = LoopVar("block")
_TILE: Final = LoopVar("tile")
_TURN: Final = LoopVar("turn")
Element = Callable[[Sequence[Scalar], Scalar, Scalar], Scalar]
"""Function from the number of a matrix, as indices, a row and a column to a scalar."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix that a kernel of attention reads a tile of.

    Attributes:
        value: Its elements, in the element type of the tiles.
        is_along_rows: Whether elements of a column follow each other in memory, and not those of a row.
    """

    value: Element
    is_along_rows: bool


@dataclass(frozen=True, slots=True)
class Attention:
    """An attention.

    Attributes:
        shape: Extents before the last two: numbers of matrices.
        rows: Number of queries.
        keys: Number of keys.
        depth: Number of elements of a query.
        columns: Number of elements of a value.
        dtype: Element type of the tiles.
        queries: Queries, by row and element.
        key_rows: Keys, by key and element.
        values: Values, by key and column.
        score: Function from a product, the matrix, row and key to the score in float32.
        finish: Function from a weighted sum and the total of its weights, the matrix, row and column to the
            statement that stores what becomes of them.
    """

    shape: tuple[int, ...]
    rows: int
    keys: int
    depth: int
    columns: int
    dtype: DType
    queries: Operand
    key_rows: Operand
    values: Operand
    score: Callable[[Scalar, Sequence[Scalar], Scalar, Scalar], Scalar]
    finish: Callable[[Scalar, Scalar, Sequence[Scalar], Scalar, Scalar], Statement]


def attention_kernel(attention: Attention, layout: AttentionLayout) -> Statement:
    """Return the kernel of an attention."""
    return _Kernel(attention, layout, layout.tiles()).statement()


@dataclass(frozen=True, slots=True)
class _Kernel:
    attention: Attention
    layout: AttentionLayout
    tiles: AttentionTiles

    def statement(self) -> Statement:
        """Return the loop over blocks."""
        layout, shape = self.layout, self.attention.shape
        down = -(-self.attention.rows // layout.rows)
        matrix = unflattened(div(_BLOCK, down), shape)
        first = times(mod(_BLOCK, down), layout.rows)
        body: Statement = block([self._cleared(), *self._steps(matrix, first), *self._stored(matrix, first)])
        for buffer in reversed((self._sums, self._largest, self._totals)):
            body = Allocate(buffer, body)
        kernel: Statement = For(layout.thread, layout.threads, body, ForKind.THREAD)
        for buffer in reversed(self.tiles):
            kernel = Allocate(buffer, kernel)
        return For(_BLOCK, prod(shape) * down, kernel, ForKind.BLOCK)

    @property
    def _sums(self) -> Buffer:
        return _registers("sums", self.layout.sums_shape)

    @property
    def _scores(self) -> Buffer:
        return _registers("scores", self.layout.scores_shape)

    @property
    def _largest(self) -> Buffer:
        return _registers("largest", (self.layout.rows_of_thread,))

    @property
    def _totals(self) -> Buffer:
        return _registers("totals", (self.layout.rows_of_thread,))

    def _cleared(self) -> Statement:
        starts = ((self._sums, 0.0), (self._largest, -inf), (self._totals, 0.0))
        return block([_filled_with(buffer, start) for buffer, start in starts])

    def _steps(self, matrix: Sequence[Scalar], first: Scalar) -> list[Statement]:
        """Return the statements that go through the keys."""
        attention, layout, tiles = self.attention, self.layout, self.tiles
        key = times(_TILE, layout.keys)
        queries = self._fill(
            *(tiles.queries, attention.queries, matrix, first),
            limits=(attention.rows, attention.depth),
        )
        limits = (attention.keys, attention.depth), (attention.keys, attention.columns)
        keys = self._fill(tiles.keys, attention.key_rows, matrix, key, limits=limits[0])
        values = self._fill(tiles.values, attention.values, matrix, key, limits=limits[1])
        scores = block(
            [
                _filled_with(self._scores, 0.0),
                layout.scores(self._scores, tiles),
                self._masked(matrix, first, key),
                self._largest_parts(),
                Barrier(),
                *self._rescaled(),
            ]
        )
        count = -(-attention.keys // layout.keys)
        step = [
            *([Barrier()] if count > 1 else []),  # the step before has read its tiles
            *(keys, values, Barrier(), Allocate(self._scores, scores)),
            *(Barrier(), layout.weighted_sums(self._sums, tiles)),
        ]
        return [queries, For(_TILE, count, block(step))]

    def _fill(
        self,
        tile: Buffer,
        operand: Operand,
        matrix: Sequence[Scalar],
        first: Scalar,
        *,
        limits: tuple[int, int],
    ) -> Statement:
        """Return the statement that fills a tile together, with zeros where the matrix ends."""
        rows, columns = self.layout.filled_extents(tile)
        count, thread = rows * columns, self.layout.thread
        position = plus(times(_TURN, self.layout.threads), thread)
        if operand.is_along_rows:
            row, column = mod(position, rows), div(position, rows)
        else:
            row, column = div(position, columns), mod(position, columns)
        inside = _both(less(plus(first, row), limits[0]), less(column, limits[1]))
        value = operand.value(matrix, plus(first, row), column)
        zero = Literal(0, tile.dtype)
        body: Statement = IfThenElse(
            inside, Store(tile, (row, column), value), Store(tile, (row, column), zero)
        )
        if count % self.layout.threads:
            body = IfThenElse(less(position, count), body)
        return For(_TURN, -(-count // self.layout.threads), body)

    def _masked(self, matrix: Sequence[Scalar], first: Scalar, key: Scalar) -> Statement:
        """Return the statement that makes scores of products, -inf behind the last key."""

        def masked(at: tuple[Scalar, ...]) -> Statement:
            score = self.layout.score_at(at)
            row, column = plus(first, self.layout.row(score.row)), plus(key, self.layout.key(score.column))
            product = Load(self._scores, at)
            inside = _both(less(row, self.attention.rows), less(column, self.attention.keys))
            return IfThenElse(
                inside,
                Store(self._scores, at, self.attention.score(product, matrix, row, column)),
                Store(self._scores, at, _float(-inf)),
            )

        return for_each(self._scores.shape, masked)

    def _largest_parts(self) -> Statement:
        """Return the statement that stores the largest of the thread's scores of each row."""
        parts = []
        for row in range(self.layout.rows_of_thread):
            scores = [Load(self._scores, at) for at in self.layout.scores_of(row)]
            parts.append(Store(self.tiles.parts, self._part(row), _largest_of(scores)))
        return block(parts)

    def _part(self, row: int) -> tuple[Scalar, Scalar]:
        return self.layout.row(number(row)), self.layout.share

    def _rescaled(self) -> list[Statement]:
        """Return the statements that make weights of scores, and bring sums to their scale."""
        return [self._rescaled_row(row) for row in range(self.layout.rows_of_thread)]

    def _rescaled_row(self, row: int) -> Statement:
        layout, at = self.layout, (number(row),)
        held, factor = _registers(f"held.{row}", ()), _registers(f"factor.{row}", ())
        before, total = Load(self._largest, at), Load(self._totals, at)
        parts = [Load(self.tiles.parts, (layout.row(at[0]), number(n))) for n in range(layout.shares)]
        is_nothing = Arith(ArithOp.EQ, (before, _float(-inf)))
        offset = Arith(ArithOp.SELECT, (is_nothing, _float(0.0), before))
        statements: list[Statement] = [
            Store(held, (), before),
            Store(self._largest, at, _largest_of([before, *parts])),
            Store(factor, (), _exp(_difference(Load(held, ()), offset))),
            Store(held, (), offset),
            Store(self._totals, at, _product(total, Load(factor, ()))),
        ]
        statements += [
            Store(self._sums, element, _product(Load(self._sums, element), Load(factor, ())))
            for element in layout.sums_of(row)
        ]
        for element in layout.scores_of(row):
            score = Load(self._scores, element)
            column = layout.key(layout.score_at(element).column)
            statements += [
                Store(self._scores, element, _exp(_difference(score, Load(held, ())))),
                Store(self._totals, at, Arith(ArithOp.ADD, (total, score))),
                Store(self.tiles.weights, (layout.row(at[0]), column), self._narrow(score)),
            ]
        return Allocate(held, Allocate(factor, block(statements)))

    def _narrow(self, scalar: Scalar) -> Scalar:
        return scalar if self.attention.dtype is DType.FLOAT32 else Cast(scalar, self.attention.dtype)

    def _stored(self, matrix: Sequence[Scalar], first: Scalar) -> list[Statement]:
        """Return the statements that add up totals, and store what becomes of the sums."""
        layout = self.layout
        shared: list[Statement] = []
        added: list[Statement] = []
        for row in range(layout.rows_of_thread):
            at = (number(row),)
            shared.append(Store(self.tiles.parts, self._part(row), Load(self._totals, at)))
            total: Scalar = Load(self.tiles.parts, (layout.row(at[0]), number(0)))
            for part in range(1, layout.shares):
                more = Load(self.tiles.parts, (layout.row(at[0]), number(part)))
                total = Arith(ArithOp.ADD, (total, more))
            added.append(Store(self._totals, at, total))

        def stored(at: tuple[Scalar, ...]) -> Statement:
            element = layout.sum_at(at)
            row, column = plus(first, layout.row(element.row)), layout.column(element.column)
            total = Load(self._totals, (element.row,))
            body = self.attention.finish(Load(self._sums, at), total, matrix, row, column)
            inside = _both(less(row, self.attention.rows), less(column, self.attention.columns))
            return IfThenElse(inside, body)

        return [*shared, Barrier(), *added, for_each(self._sums.shape, stored)]


def _registers(name: str, shape: tuple[int, ...]) -> Buffer:
    return Buffer(name, shape, DType.FLOAT32, MemoryScope.REGISTER)


def _filled_with(buffer: Buffer, value: float) -> Statement:
    return for_each(buffer.shape, lambda at: Store(buffer, at, _float(value)))


def _largest_of(scalars: Sequence[Scalar]) -> Scalar:
    largest = scalars[0]
    for scalar in scalars[1:]:
        largest = Arith(ArithOp.MAX, (largest, scalar))
    return largest


def _both(left: Scalar, right: Scalar) -> Scalar:
    return Arith(ArithOp.AND, (left, right))


def _difference(left: Scalar, right: Scalar) -> Scalar:
    return Arith(ArithOp.SUB, (left, right))


def _product(left: Scalar, right: Scalar) -> Scalar:
    return Arith(ArithOp.MUL, (left, right))


def _exp(scalar: Scalar) -> Scalar:
    return Intrinsic("exp", (scalar,), DType.FLOAT32)


def _float(value: float) -> Literal:
    return Literal(value, DType.FLOAT32)
