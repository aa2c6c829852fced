"""Loads of whole vectors whose elements are shuffled into the lanes that need them."""

from __future__ import annotations

from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.arithmetic import constant_mask, mask_lanes
from intarsia.native.emission.lane_pattern import LanePattern, gathered
from intarsia.native.emission.memory import element_type, held_value, load_masked_vector, load_vector
from intarsia.native.emission.state import FunctionState, MemoryPlace
from intarsia.native.emission.transposed_rows import Column, transpose
from intarsia.native.emission.types import Value, stored_bytes


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
