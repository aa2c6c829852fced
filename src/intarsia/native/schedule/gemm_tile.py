"""The part of a product that stays in registers while its sums run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

_CHAINS = 10
"""Sums that must run side by side to keep the adders busy: latency 4 times two units, and some slack."""
_STEP, _ROW, _VECTOR = 2.0, 0.4, 1.0
"""What a step, an element of the left and a vector of the right matrix cost in multiplications.

The first is the loop, the last comes from the second-level cache.
"""
_FAR_VECTOR = 20.0
"""What a vector of the right matrix costs at its first use, if it comes from behind the second cache."""
_HIDDEN = 0.9
"""The part of a tile's own time that waiting for its vectors hides."""
_MOST_VECTORS = 8
_OPERANDS = 3
"""Registers that are not for sums: those of a step's vectors and of one element must be there besides."""
_VARIANT = 0.03
"""What another shape of the tile for a rest costs, as a part of the whole."""


@dataclass(frozen=True, slots=True)
class GemmTile:
    """Rows and columns of a tile.

    Attributes:
        rows: How many.
        columns: How many, a multiple of the lanes of a vector unless there are fewer.
    """

    rows: int
    columns: int


@cache
def gemm_tile(
    rows: int,
    columns: int,
    lanes: int,
    accumulators: int,
    pieces: int = 1,
    is_far: bool = False,
    is_along_sum: bool = False,
) -> GemmTile:
    """The tile for which a machine takes the least time.

    A step of the sum over a tile of m rows and n vectors takes m * n multiplications, and n + m loads; both
    run two at a time. Rests take steps of their own shape. By measurement the best tiles have more rows than
    vectors: 6 by 2 vectors where there are 16 registers, 8 by 3 or 14 by 2 where there are 32. If the right
    matrix comes from far, tiles that have all of a few rows wait less for it: 16 by 1.

    Args:
        rows: Of the whole product.
        columns: Of the whole product.
        lanes: Elements of a vector.
        accumulators: How many vector registers may hold sums.
        pieces: Into how many the columns of a single row are cut, so that all threads are busy.
        is_far: Whether the right matrix is too large for the second-level cache.
        is_along_sum: Whether vectors run along the sums, so that a column has a vector of its own, and an
            element of the left matrix is one too.
    """
    lanes = 1 if is_along_sum else lanes
    most = -(-columns // lanes // pieces) if rows == 1 else -(-columns // lanes)
    tiles = [
        GemmTile(m, n * lanes)
        for n in range(1, max(1, min(_MOST_VECTORS, most)) + 1)
        for m in range(1, min(rows, accumulators // n) + 1)
        if m == 1 or m * n + n < accumulators + _OPERANDS
    ]
    far = _FAR_VECTOR if is_far and rows > 1 else 0.0  # with a single row all tiles wait as long
    row = _VECTOR if is_along_sum else _ROW
    best = min(tiles, key=lambda tile: _time(tile, rows, columns, lanes, far, row))
    return GemmTile(best.rows, min(best.columns, columns))


def _time(tile: GemmTile, rows: int, columns: int, lanes: int, far: float, row: float) -> float:
    """Half cycles for each step of the sums, plus a little for each shape of the code.

    The first tile of each panel waits for its vectors, `far` half cycles each; what is loaded of a row takes
    `row` of them.
    """
    down, across = _pieces(rows, tile.rows), _pieces(columns, tile.columns)
    total = 0.0
    for n, times in across:
        vectors = -(-n // lanes)
        steps = sum(count * _step(m, vectors, row) for m, count in down)
        first = _step(down[0][0], vectors, row)
        total += times * (steps + max(0.0, far * vectors - _HIDDEN * first))
    return total * (1 + _VARIANT * (len(down) * len(across) - 1))


def _step(rows: int, vectors: int, row: float) -> float:
    return max(rows * vectors, _CHAINS, rows + vectors) + _STEP + row * rows + _VECTOR * vectors


def _pieces(extent: int, size: int) -> list[tuple[int, int]]:
    """Sizes of pieces, and how many there are of each."""
    whole, rest = divmod(extent, size)
    return [each for each in ((size, whole), (rest, 1)) if each[0] and each[1]]
