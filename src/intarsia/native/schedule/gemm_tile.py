"""Register tiles of matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts

_SLACK = 2
"""Number of sums beyond those that keep the FMA units busy, since loads delay some of them."""
_STEP, _ROW, _VECTOR = 2.0, 0.4, 1.0
"""Costs of a reduction step (its loop), a load of the left matrix, and a vector of the right matrix.

In multiplications on Zen 3; the vector comes from the second-level cache.
"""
_FAR_VECTOR = 20.0
"""Cost of the first use of a vector of the right matrix beyond the second-level cache, in multiplications on
Zen 3."""
_HIDDEN = 0.9
"""Share of a tile's compute time that overlaps with the wait for its vectors."""
_SPLIT = 0.75
"""Additional cost of a load of words whose halves are multiplied apart, as AVX2 multiplies bytes: two or
three instructions, where a product of two words takes four."""
_MOST_VECTORS = 8
MANY_ROWS = 64
"""More rows than any tile has."""
_OPERANDS = 3
"""Number of registers not used for sums; the vectors of a step and one element need registers too."""
_VARIANT = 0.03
"""Cost of each extra tile shape for a remainder, relative to the total."""


@dataclass(frozen=True, slots=True)
class GemmTile:
    """Rows and columns of a tile.

    Attributes:
        rows: Number of rows.
        columns: Number of columns, a multiple of the vector lanes unless the product has fewer.
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
    most_rows: int = MANY_ROWS,
    costs: RelativeCosts = REFERENCE_COSTS,
    *,
    splits_words: bool = False,
) -> GemmTile:
    """Return the register tile with the least estimated time.

    A step of the sum over a tile of m rows and n vectors takes m * n multiplications, and n + m loads; Zen 3
    runs two of each per cycle. Remainders take steps of other shapes. Measurements show that the best tiles
    have more rows than vectors: 6 x 2 vectors with 16 registers, 8 x 3 or 14 x 2 with 32. If the
    right matrix is beyond the second-level cache, tiles with more rows wait less for it: 16 x 1.

    Args:
        rows: Number of rows of the whole product.
        columns: Number of columns of the whole product.
        lanes: Number of elements of a vector.
        accumulators: Number of vector registers that may contain sums.
        pieces: Number of pieces of the columns of a single row, so that all threads are busy.
        is_far: Whether the right matrix is too large for the second-level cache.
        is_along_sum: Whether vectors run along the sums, so that a column has a vector of its own, and an
            element of the left matrix is one too.
        most_rows: Maximum number of rows of a tile.
        costs: Costs of the machine.
        splits_words: Whether elements are words whose halves are multiplied apart.
    """
    lanes = 1 if is_along_sum else lanes
    most = -(-columns // lanes // pieces) if rows == 1 else -(-columns // lanes)
    tiles = [
        GemmTile(m, n * lanes)
        for n in range(1, max(1, min(_MOST_VECTORS, most)) + 1)
        for m in range(1, min(rows, most_rows, accumulators // n) + 1)
        if m == 1 or m * n + n < accumulators + _OPERANDS
    ]
    far = (
        _FAR_VECTOR * costs.memory if is_far and rows > 1 else 0.0
    )  # with a single row all tiles wait as long
    split = _SPLIT if splits_words else 0.0
    loads = (_VECTOR if is_along_sum else _ROW) + split, _VECTOR + split
    best = min(tiles, key=lambda tile: _time(tile, rows, columns, lanes, far, loads, costs))
    return GemmTile(best.rows, min(best.columns, columns))


def _time(
    tile: GemmTile,
    rows: int,
    columns: int,
    lanes: int,
    far: float,
    loads: tuple[float, float],
    costs: RelativeCosts,
) -> float:
    """Estimate the time of a reduction step over the whole product, in half cycles.

    The first tile of each panel waits `far` half cycles for each of its vectors; a load of the left matrix
    and a vector of the right one take `loads`.
    """
    down, across = _pieces(rows, tile.rows), _pieces(columns, tile.columns)
    total = 0.0
    for n, times in across:
        vectors = -(-n // lanes)
        steps = sum(count * _step(m, vectors, loads, costs) for m, count in down)
        first = _step(down[0][0], vectors, loads, costs)
        total += times * (steps + max(0.0, far * vectors - _HIDDEN * first))
    return total * (1 + _VARIANT * (len(down) * len(across) - 1))


def _step(rows: int, vectors: int, loads: tuple[float, float], costs: RelativeCosts) -> float:
    row, vector = loads
    busy = max(rows * vectors, costs.sums + _SLACK, (rows + vectors) * costs.first)
    return busy + _STEP + row * costs.first * rows + vector * costs.second * vectors


def _pieces(extent: int, size: int) -> list[tuple[int, int]]:
    """Return pairs of the size and the number of pieces."""
    whole, rest = divmod(extent, size)
    return [piece for piece in ((size, whole), (rest, 1)) if piece[0] and piece[1]]
