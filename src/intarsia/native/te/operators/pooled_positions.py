"""MaxPool with the result Indices: the position of the largest element of each window."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, compute_many
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, logical_and, reduce, select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.extreme_positions import LAST, extreme_combiner
from intarsia.native.te.operators.windows import Window, spatial_names, tap_axes, tap_indices
from intarsia.native.te.tensor import Tensor


def max_pool_with_positions(
    call: ComputeCall, source: Tensor, windows: Sequence[Window]
) -> tuple[Tensor, Tensor]:
    """Declare the largest elements, and the first position of each in the flattened input.

    Args:
        call: Call whose attribute storage_order selects row-major or column-major positions.
        source: Padded input.
        windows: Windows, one for each spatial dimension.
    """
    taps, shape = tap_axes(windows), call.input(0).shape

    def element(n: Expression, c: Expression, *positions: Expression) -> Reduction:
        at = tap_indices(windows, positions, taps)
        conditions = [condition for w, index in zip(windows, at, strict=True) for condition in w.holds(index)]
        input_indices = [index - window.begin for window, index in zip(windows, at, strict=True)]
        index = _flattened((n, c, *input_indices), shape)
        if conditions:
            index = select(logical_and(*conditions), index, const(LAST, DType.INT64))
        values = index, source[(n, c, *at)]
        return reduce(extreme_combiner(source.dtype), values, taps)

    names = ("n", "c", *spatial_names(len(windows)))
    first_positions, largest = compute_many(call.shape, element, f"{call.name}.found", names, count=2)
    if not call.integer("storage_order"):
        return largest, first_positions
    turned = compute(call.shape, lambda *i: _by_columns(first_positions[i], shape), f"{call.name}.indices")
    return largest, turned


def _flattened(indices: Sequence[Expression], shape: Sequence[int]) -> Expression:
    position, *more = indices
    for index, extent in zip(more, shape[1:], strict=True):
        position = position * extent + index
    return position


def _by_columns(position: Expression, shape: Sequence[int]) -> Expression:
    """Return a position counted row by row as one counted column by column within each channel."""
    spatial = shape[2:]
    size, indices, rest = 1, [], position
    for extent in reversed(spatial):
        indices.append(rest % extent)
        rest, size = rest // extent, size * extent
    by_columns, step = rest * size, 1
    for index, extent in zip(reversed(indices), spatial, strict=True):
        by_columns, step = by_columns + index * step, step * extent
    return by_columns
