"""Loads of whole vectors whose elements are shuffled into the lanes that need them."""

from __future__ import annotations

from typing import Final

from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.arithmetic import constant_mask, mask_lanes
from intarsia.native.emission.lane_pattern import LanePattern, gathered
from intarsia.native.emission.memory import element_type, held_value, load_masked_vector, load_vector
from intarsia.native.emission.state import FunctionState, MemoryPlace
from intarsia.native.emission.transposed_rows import Column, transpose
from intarsia.native.emission.types import Value, shuffle_mask, stored_bytes

_LOADS_OF_LANE: Final = 2
"""Loads and shuffles for each lane, from which squares are transposed row by row. Rows of n elements without
gaps take n loads of whole vectors, and n - 1 shuffles for each of n columns."""


def load_column(state: FunctionState, memory: MemoryPlace, flat: AffineIndex, column: Column) -> Value:
    """Load the element of each lane at an offset in elements; other columns of the square are read as well.

    Args:
        state: State in lanes.
        memory: The buffer.
        flat: Offset of the column.
        column: Its position in the square.
    """
    builder, lanes = state.builder, state.lanes
    kind = element_type(state, memory.dtype, lanes)
    active = (True,) * lanes if state.mask is None else mask_lanes(state.mask)
    assert active is not None, "a column has no other masks"
    is_dense = column.width == flat.lane and column.width**2 < _LOADS_OF_LANE * lanes
    if is_dense and all(active[: sum(active)]):
        text = _interleaved_column(state, memory, flat, column, sum(active))
        return held_value(state, text, memory.dtype, lanes)
    rows = []
    for lane in range(lanes):
        first = AffineIndex(flat.const - column.number + lane * flat.lane, 0, flat.terms)
        rows.append(_first_elements(state, memory, first, column.width) if active[lane] else "poison")
    key = "transposed", *rows
    columns = builder.noted(key)
    if columns is None:
        columns = transpose(builder, rows, kind, stored_bytes(memory.dtype))
        builder.note(key, columns)
    return held_value(state, columns[column.number], memory.dtype, lanes)


def _interleaved_column(
    state: FunctionState, memory: MemoryPlace, flat: AffineIndex, column: Column, active: int
) -> str:
    """Return a column of rows that follow each other without gaps, shuffled out of whole vectors.

    All columns are shuffled out of the same vectors: of two columns, 16 lanes take two loads and two
    shuffles, where 16 rows of two elements take 16 loads.

    Args:
        state: State in lanes.
        memory: The buffer.
        flat: Offset of the column.
        column: Its position in the square, which is as wide as rows are apart.
        active: Number of lanes that are read, the first ones.
    """
    builder, lanes, step = state.builder, state.lanes, column.width
    kind = element_type(state, memory.dtype, lanes)
    first, merged = flat._replace(const=flat.const - column.number, lane=0), "poison"
    for begin in range(0, active * step, lanes):
        count = min(lanes, active * step - begin)
        part = _first_elements(state, memory, first._replace(const=first.const + begin), count)
        offsets = [column.number + lane * step - begin for lane in range(lanes)]
        # Lanes of earlier parts stay; what is in those of later parts is replaced later.
        places = [
            lane if offset not in range(count) else lanes + offset for lane, offset in enumerate(offsets)
        ]
        mask = shuffle_mask(tuple(places))
        merged = builder.pure(f"shufflevector {kind} {merged}, {kind} {part}, {mask}")
    return merged


def load_pattern(state: FunctionState, memory: MemoryPlace, pattern: LanePattern) -> Value:
    """Load the element of each lane of a pattern."""
    kind = element_type(state, memory.dtype, state.lanes)
    parts = [
        _first_elements(state, memory, pattern.base._replace(const=window.begin), window.length)
        for window in pattern.windows
    ]
    return held_value(state, gathered(state.builder, pattern, parts, kind), memory.dtype, state.lanes)


def _first_elements(state: FunctionState, memory: MemoryPlace, flat: AffineIndex, count: int) -> str:
    """Return a vector whose first lanes are `count` contiguous elements; nothing behind them is read."""
    lanes = state.lanes
    if count == lanes:
        return load_vector(state, memory, flat, lanes)
    mask = constant_mask(tuple(lane < count for lane in range(lanes)))
    return load_masked_vector(state, memory, flat, mask.text)
