"""Which rows, keys and columns each thread of a kernel of attention has."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from intarsia.ir.prim_func import Buffer, LoopVar, Scalar, Statement


class AttentionTiles(NamedTuple):
    """The buffers in shared memory.

    Attributes:
        queries: Rows of queries.
        keys: Rows of keys.
        values: Rows of values.
        weights: Weights, by row and key.
        parts: Largest scores and totals that the threads of a row exchange, one for each thread.
    """

    queries: Buffer
    keys: Buffer
    values: Buffer
    weights: Buffer
    parts: Buffer


class ThreadElement(NamedTuple):
    """An element of a thread: the number of its row, and that of its column, among those of the thread."""

    row: Scalar
    column: Scalar


class AttentionLayout(Protocol):
    """Which rows, keys and columns each thread has."""

    @property
    def thread(self) -> LoopVar:
        """Counter of threads."""

    @property
    def threads(self) -> int:
        """Number of threads of a block."""

    @property
    def rows(self) -> int:
        """Number of rows of a block."""

    @property
    def keys(self) -> int:
        """Number of keys of a tile."""

    @property
    def shares(self) -> int:
        """Number of threads that share a row."""

    @property
    def share(self) -> Scalar:
        """Number of a thread among those of its rows."""

    @property
    def rows_of_thread(self) -> int:
        """Number of rows of a thread."""

    @property
    def scores_shape(self) -> tuple[int, ...]:
        """Extents of a thread's scores."""

    @property
    def sums_shape(self) -> tuple[int, ...]:
        """Extents of a thread's sums."""

    def row(self, at: Scalar) -> Scalar:
        """Return the row in the block of a thread's row."""

    def key(self, at: Scalar) -> Scalar:
        """Return the key in the tile of a thread's column of scores."""

    def column(self, at: Scalar) -> Scalar:
        """Return the column of a thread's column of sums."""

    def score_at(self, at: tuple[Scalar, ...]) -> ThreadElement:
        """Return row and column of a thread's score."""

    def sum_at(self, at: tuple[Scalar, ...]) -> ThreadElement:
        """Return row and column of a thread's sum."""

    def scores_of(self, row: int) -> list[tuple[Scalar, ...]]:
        """Return the indices of a thread's scores of a row."""

    def sums_of(self, row: int) -> list[tuple[Scalar, ...]]:
        """Return the indices of a thread's sums of a row."""

    def tiles(self) -> AttentionTiles:
        """Return the buffers in shared memory."""

    def filled_extents(self, tile: Buffer) -> tuple[int, int]:
        """Return the extents of a tile that are filled, without what pads its rows."""

    def scores(self, scores: Buffer, tiles: AttentionTiles) -> Statement:
        """Return the statement that adds products of queries and keys to a thread's scores."""

    def weighted_sums(self, sums: Buffer, tiles: AttentionTiles) -> Statement:
        """Return the statement that adds products of weights and values to a thread's sums."""
