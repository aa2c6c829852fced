"""Read columns of a square of elements that is contiguous the other way: whole rows, transposed in registers.

    unrolled i in 8             row j = the 8 elements from x[8 * j] on, for 8 rows j
      vectorized j in 8   ->    3 steps, in each of which two vectors exchange halves, quarters, single lanes
        y[8 * i + j] = x[8 * j + i]

Lane by lane such a read takes 8 loads and 7 insertions for each vector, so a load and 3 shuffles.
"""

from __future__ import annotations

from typing import Final

from intarsia.ir.prim_func import Load
from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.state import FunctionState
from intarsia.native.emission.types import shuffle_mask

_LANES: Final = (4, 8, 16)
"""Numbers of lanes of 4 bytes for which the steps are single instructions or two."""
_ELEMENT_BYTES: Final = 4


def column_of_rows(state: FunctionState, access: Load, flat: AffineIndex) -> int | None:
    """Return the number of a column that is read in an unrolled loop over all columns of its square.

    Args:
        state: State in the lanes of a vectorised loop.
        access: The read.
        flat: Offset of its element, in elements.

    Returns:
        The number within the square; None for other reads, and for those that may not be repeated.
    """
    lanes = state.lanes
    is_across = lanes in _LANES and flat.lane not in (0, 1, -1) and state.mask is None
    if not is_across or not state.unrolled or access.buffer.dtype.numpy.itemsize != _ELEMENT_BYTES:
        return None
    plan = state.kernel.facts.plan(access)
    for name, coefficient in () if plan is None else plan.terms:
        number, extent = state.env[name].const, state.unrolled.get(name, 0)
        if coefficient == 1 and number // lanes < extent // lanes:
            return number % lanes
    return None


def transpose(builder: Builder, rows: list[str], kind: str) -> list[str]:
    """Return the columns of a square of vectors.

    Args:
        builder: Builder of the function.
        rows: Vectors, as many as each has lanes.
        kind: Type of a vector.
    """
    lanes = len(rows)
    for half in (size for size in (8, 4, 2, 1) if size < lanes):
        # Rows `half` apart exchange the parts of `half` lanes that lie on the wrong side of the diagonal.
        kept = tuple(lane if not lane & half else lanes + lane - half for lane in range(lanes))
        moved = tuple(lane + half if not lane & half else lanes + lane for lane in range(lanes))
        exchanged = list(rows)
        for upper in (row for row in range(lanes) if not row & half):
            pair = f"{kind} {rows[upper]}, {kind} {rows[upper + half]}"
            exchanged[upper] = builder.pure(f"shufflevector {pair}, {shuffle_mask(kept)}")
            exchanged[upper + half] = builder.pure(f"shufflevector {pair}, {shuffle_mask(moved)}")
        rows = exchanged
    return rows
