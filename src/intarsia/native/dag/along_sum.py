"""When the vectors of a product run along its sums, so that a transposed matrix is read in place."""

from __future__ import annotations

from typing import Final

_LANES_COST: Final = 18
"""Cost of the horizontal sum of one result, in elements of a matrix that are moved.

Both are shuffles of registers, so their ratio is that of the code and not read from the machine model: over
135 products of 1 to 12 rows both orders take as long at 16 to 21 with AVX-512, at 18 to 22 with AVX2 (Zen 5).
"""


def pays_along_sum(rows: int, depth: int) -> bool:
    """Return whether a product by a transposed matrix is faster without moving the matrix.

    Args:
        rows: Number of rows of the product: each result of them takes a horizontal sum.
        depth: Number of products of a sum.
    """
    return rows * _LANES_COST <= depth
