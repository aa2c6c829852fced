"""Blocks of a product's tiles, by the size of the second-level cache and the number of threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Final

from intarsia.native.dag.gemm_form import GemmForm
from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts
from intarsia.native.schedule.gemm_tile import GemmTile
from intarsia.target.cache_sizes import CacheSizes

_LEFT_SHARE: Final = 2
"""Divisor of the second-level cache size that gives the memory for reused rows of the left matrix."""
_PANEL_SHARE: Final = 8
"""Divisor of the second-level cache size for one panel of the right matrix."""
_STEPS_SHARE: Final = 16
"""Divisor of the second-level cache size for a panel of cut sums: two of them, rows and results must fit."""
_TILE_SHARE: Final = 2
"""Divisor of the first-level cache size for rows of a tile of cut sums."""
_RESULT_SHARE: Final = 4
"""Divisor of the second-level cache size for results, and for rows, of cut sums."""
_ROWS_OF_COPIES: Final = 512
"""Number of rows that use a panel which is packed for them: with 66, packing takes a quarter of the time."""
PIECES: Final = 4
"""Minimum number of chunks of work per thread, so that a late chunk delays the others only briefly."""
_MOST_PIECES: Final = 2 * PIECES
# Costs relative to the time of a tile, by measurement on Zen 3.
_PANEL_COST: Final = 8.0
"""Cost of the first use of a panel, which is loaded from memory, for tiles of one row."""
_COPY_COST: Final = 16.0
"""Cost of packing a panel, for tiles of one row. Its instructions cost more than its loads: it stays."""
_ROWS_COST: Final = 13.0
"""Cost of the first use of rows, for tiles of one column."""
_PIECE_COST: Final = 0.15
"""Extra cost of a single chunk of work per thread, compared with many."""


@dataclass(frozen=True, slots=True)
class GemmBlock:
    """A block of tiles whose rows and columns share the second-level cache.

    Attributes:
        rows: Number of tiles from top to bottom.
        columns: Number of tiles from left to right.
        depth: Number of products that a tile adds up before the next tile is computed.
    """

    rows: int
    columns: int
    depth: int


def gemm_block(
    form: GemmForm,
    tile: GemmTile,
    caches: CacheSizes,
    threads: int,
    *,
    may_cut: bool = True,
    copies: bool = False,
    costs: RelativeCosts = REFERENCE_COSTS,
) -> GemmBlock:
    """Return the block of a product.

    Sums are cut only if neither the rows of the left matrix nor a panel of the right one stay in the cache.

    Args:
        form: Product of matrices.
        tile: Register tile.
        caches: Sizes of a core's caches.
        threads: Number of threads.
        may_cut: Whether sums may be cut.
        copies: Whether each block packs the panels of the right matrix that it uses.
        costs: Costs of the machine.
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
    if copies:
        rows = max(rows, _even(down, -(-_ROWS_OF_COPIES // tile.rows)))
    if depth < form.depth:
        most_columns = most_rows // (rows * tile.rows * tile.columns * size)
    columns = _even(across, most_columns)
    if threads > 1:
        rows, columns = _of_threads(
            batch, tile, (down, across), (rows, columns), threads, copies, costs.memory
        )
    return GemmBlock(rows, columns, depth)


def _even(extent: int, most: int) -> int:
    """Return the size of pieces of at most `most`, as equal as possible."""
    count = -(-extent // max(1, most))
    return -(-extent // count)


@cache
def _of_threads(
    batch: int,
    tile: GemmTile,
    tiles: tuple[int, int],
    most: tuple[int, int],
    threads: int,
    copies: bool,
    memory: float,
) -> tuple[int, int]:
    """Return the rows and columns of a block, at most those given, that minimise the time of all threads.

    `memory` is the cost of loads from memory, relative to Zen 3.
    """
    heights, widths = (_sizes(extent, size, threads) for extent, size in zip(tiles, most, strict=True))
    choices = [(rows, columns) for rows in heights for columns in widths]
    panel = _PANEL_COST * memory + (_COPY_COST if copies else 0.0)

    def time(block: tuple[int, int]) -> float:
        """Estimate the time of the busiest thread, in tiles."""
        rows, columns = block
        pieces = batch * -(-tiles[0] // rows) * -(-tiles[1] // columns)
        rounds = -(-pieces // threads)
        far = 1 + panel / (rows * tile.rows) + _ROWS_COST * memory / (columns * tile.columns)
        return rounds * rows * columns * far * (1 + _PIECE_COST / min(rounds, PIECES))

    return min(choices, key=lambda block: (time(block), -block[0] * block[1]))


def _sizes(extent: int, most: int, threads: int) -> list[int]:
    """Return sizes of equal pieces, down to pieces that give all threads enough work."""
    least = -(-extent // most)
    return sorted(
        {-(-extent // count) for count in range(least, min(extent, least + threads * _MOST_PIECES) + 1)}
    )
