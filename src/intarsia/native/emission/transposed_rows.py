"""Read columns of a square of elements that is contiguous the other way: whole rows, transposed in registers.

    unrolled i in 8             row j = the 8 elements from x[8 * j] on, for 8 rows j
      vectorized j in 8   ->    3 steps, in each of which two vectors exchange halves, quarters, single lanes
        y[8 * i + j] = x[8 * j + i]

Lane by lane such a read takes 8 loads and 7 insertions for each vector, so a load and 3 shuffles. Vectors of
up to 16 bytes, such as 16 bytes of 16 channels, are interleaved instead, which is one instruction everywhere.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from intarsia.ir.prim_func import Load
from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.arithmetic import mask_lanes
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.state import FunctionState
from intarsia.native.emission.types import shuffle_mask, stored_bytes
from intarsia.native.machine.shuffled_vectors import TRANSPOSED_BYTES

_LANES: Final = (4, 8, 16)
"""Numbers of lanes for which the steps are single instructions or two."""
_MASKED_BYTES: Final = 4
"""Size of the elements whose loads take masks, in bytes."""
_INTERLEAVED_BYTES: Final = 16
"""Maximum size of the vectors that are interleaved."""
_FEWEST_COLUMNS: Final = 2
"""Minimum number of columns of a square that is not complete; one is read lane by lane."""


class Column(NamedTuple):
    """A column of a square.

    Attributes:
        number: Number of the column in its square.
        width: Number of columns of the square that are read; the others do not exist.
    """

    number: int
    width: int


def column_of_rows(state: FunctionState, access: Load, flat: AffineIndex) -> Column | None:
    """Return the column that is read in an unrolled loop over all columns of its square.

    The last square of a loop has fewer columns, where loads take masks, and rows of lanes that are off are
    not read.

    Args:
        state: State in the lanes of a vectorised loop.
        access: The read.
        flat: Offset of its element, in elements.

    Returns:
        None for other reads, and for those that may not be repeated.
    """
    lanes = state.lanes
    is_across = lanes in _LANES and flat.lane not in (0, 1, -1)
    itemsize = stored_bytes(access.buffer.dtype)
    if not is_across or not state.unrolled or itemsize not in TRANSPOSED_BYTES:
        return None
    if state.mask is not None and (mask_lanes(state.mask) is None or itemsize != _MASKED_BYTES):
        return None
    name = unrolled_across(state, access)
    if name is None:
        return None
    number, extent = state.env[name].const, state.unrolled[name]
    count = min(lanes, extent - number // lanes * lanes)
    has_masks = state.kernel.has_masks and itemsize == _MASKED_BYTES
    has_columns = count == lanes or (count >= _FEWEST_COLUMNS and has_masks)
    return Column(number % lanes, count) if has_columns else None


def unrolled_across(state: FunctionState, access: Load) -> str | None:
    """Return the unrolled loop that counts contiguous elements of a read; None if there is none."""
    plan = state.kernel.facts.plan(access)
    terms = () if plan is None else plan.terms
    return next((name for name, step in terms if step == 1 and name in state.unrolled), None)


def transpose(builder: Builder, rows: list[str], kind: str, itemsize: int = _MASKED_BYTES) -> list[str]:
    """Return the columns of a square of vectors.

    Args:
        builder: Builder of the function.
        rows: Vectors, as many as each has lanes.
        kind: Type of a vector.
        itemsize: Size of an element in bytes.
    """
    lanes = len(rows)
    if lanes * itemsize <= _INTERLEAVED_BYTES:
        return _interleaved(builder, rows, kind)
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


def _interleaved(builder: Builder, rows: list[str], kind: str) -> list[str]:
    """Return the columns of a square: rows half of them apart are interleaved, as often as it halves."""
    half = len(rows) // 2
    masks = [
        shuffle_mask(tuple(first + lane // 2 + lane % 2 * len(rows) for lane in range(len(rows))))
        for first in (0, half)
    ]
    for _ in range(half.bit_length()):
        pairs = [f"{kind} {rows[row]}, {kind} {rows[row + half]}" for row in range(half)]
        rows = [builder.pure(f"shufflevector {pair}, {mask}") for pair in pairs for mask in masks]
    return rows
