"""How many tiles of a product are computed together: what the second-level cache holds, and threads need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Final

from intarsia.native.machine.cache_sizes import CacheSizes
from intarsia.native.schedule.gemm_form import GemmForm
from intarsia.native.schedule.gemm_tile import GemmTile

_LEFT_SHARE: Final = 2
"""The part of the second-level cache, 1 of so many, for rows of the left matrix that are used again."""
_PANEL_SHARE: Final = 8
"""The same for one panel of the right matrix."""
_STEPS_SHARE: Final = 16
"""The same for a panel where sums are cut: two of them, rows and results have to fit."""
_TILE_SHARE: Final = 2
"""The part of the first-level cache for rows of a tile where sums are cut."""
_RESULT_SHARE: Final = 4
"""The same for results, and for rows, where sums are cut."""
PIECES: Final = 4
"""How many pieces of work each thread gets at least, so that a late one does not hold up the others."""
_MOST_PIECES: Final = 2 * PIECES
# Costs as parts of the time of a tile, by measurement.
_PANEL_COST: Final = 8.0
"""What the first use of a panel takes with tiles of one row, as it comes from memory."""
_ROWS_COST: Final = 13.0
"""What the first use of rows takes with tiles of one column."""
_PIECE_COST: Final = 0.15
"""What one piece of work for each thread takes more than many."""


@dataclass(frozen=True, slots=True)
class GemmBlock:
    """A block of tiles, of whose rows and columns parts are in the second-level cache.

    Attributes:
        rows: Tiles from top to bottom.
        columns: Tiles from left to right.
        depth: How many products are summed before the next tile has its turn.
    """

    rows: int
    columns: int
    depth: int


def gemm_block(
    form: GemmForm, tile: GemmTile, caches: CacheSizes, threads: int, *, may_cut: bool = True
) -> GemmBlock:
    """The block of a product.

    Sums are cut only if neither the rows of the left matrix nor a panel of the right one stay in the cache.

    Args:
        form: The product.
        tile: What stays in registers.
        caches: Of a core.
        threads: How many there are.
        may_cut: Whether sums may be cut.
    """
    size = form.op.dtypes[0].numpy.itemsize
    down, across = -(-form.rows // tile.rows), -(-form.columns // tile.columns)
    batch = prod(axis.extent for axis in form.op.axes) // max(1, form.rows * form.columns)
    depth, most_rows, most_columns = form.depth, caches.second // _LEFT_SHARE, across
    is_long = depth * tile.columns * size * _PANEL_SHARE >= caches.second
    if may_cut and is_long and form.rows * depth * size > most_rows:
        most_rows = caches.second // _RESULT_SHARE
        steps = caches.second // (_STEPS_SHARE * tile.columns), caches.first // (_TILE_SHARE * tile.rows)
        depth = _even(form.depth, min(steps) // size)
    rows = _even(down, most_rows // (tile.rows * depth * size))
    if depth < form.depth:
        most_columns = most_rows // (rows * tile.rows * tile.columns * size)
    columns = _even(across, most_columns)
    if threads > 1:
        rows, columns = _of_threads(batch, tile, (down, across), (rows, columns), threads)
    return GemmBlock(rows, columns, depth)


def _even(extent: int, most: int) -> int:
    """The size of equal pieces of at most so many, as far as they can be equal."""
    count = -(-extent // max(1, most))
    return -(-extent // count)


@cache
def _of_threads(
    batch: int, tile: GemmTile, tiles: tuple[int, int], most: tuple[int, int], threads: int
) -> tuple[int, int]:
    """Rows and columns of a block, at most those given, for which all threads are done first."""
    heights, widths = (_sizes(extent, size, threads) for extent, size in zip(tiles, most, strict=True))
    choices = [(rows, columns) for rows in heights for columns in widths]

    def time(block: tuple[int, int]) -> float:
        """Tiles that the busiest thread computes, with what comes on top."""
        rows, columns = block
        pieces = batch * -(-tiles[0] // rows) * -(-tiles[1] // columns)
        rounds = -(-pieces // threads)
        far = 1 + _PANEL_COST / (rows * tile.rows) + _ROWS_COST / (columns * tile.columns)
        return rounds * rows * columns * far * (1 + _PIECE_COST / min(rounds, PIECES))

    return min(choices, key=lambda block: (time(block), -block[0] * block[1]))


def _sizes(extent: int, most: int, threads: int) -> list[int]:
    """Sizes of equal pieces, up to so many pieces that all threads have enough."""
    least = -(-extent // most)
    return sorted(
        {-(-extent // count) for count in range(least, min(extent, least + threads * _MOST_PIECES) + 1)}
    )
