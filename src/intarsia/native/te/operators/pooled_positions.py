"""MaxPool with the result Indices: where the largest element of each window is."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, compute_many
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, logical_and, reduce, select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.extreme_positions import LAST, extreme_combiner
from intarsia.native.te.operators.windows import Window, places, spatial_names, tap_axes
from intarsia.native.te.tensor import Tensor


def max_pool_with_positions(
    call: ComputeCall, source: Tensor, windows: Sequence[Window]
) -> tuple[Tensor, Tensor]:
    """The largest elements, and the first position of each in the flattened input.

    Args:
        call: Its attribute storage_order says whether positions are counted row by row or column by column.
        source: The padded input.
        windows: One for each spatial dimension.
    """
    taps, shape = tap_axes(windows), call.input(0).shape

    def element(n: Expression, c: Expression, *positions: Expression) -> Reduction:
        at = places(windows, positions, taps)
        conditions = [each for w, place in zip(windows, at, strict=True) for each in w.holds(place)]
        own = [place - window.begin for window, place in zip(windows, at, strict=True)]
        place = _flattened((n, c, *own), shape)
        if conditions:
            place = select(logical_and(*conditions), place, const(LAST, DType.INT64))
        values = place, source[(n, c, *at)]
        return reduce(extreme_combiner(source.dtype), values, taps)

    names = ("n", "c", *spatial_names(len(windows)))
    found, largest = compute_many(call.shape, element, f"{call.name}.found", names, count=2)
    if not call.integer("storage_order"):
        return largest, found
    turned = compute(call.shape, lambda *i: _by_columns(found[i], shape), f"{call.name}.indices")
    return largest, turned


def _flattened(indices: Sequence[Expression], shape: Sequence[int]) -> Expression:
    place, *more = indices
    for index, extent in zip(more, shape[1:], strict=True):
        place = place * extent + index
    return place


def _by_columns(place: Expression, shape: Sequence[int]) -> Expression:
    """A position counted row by row as one counted column by column within each channel."""
    spatial = shape[2:]
    size, indices, rest = 1, [], place
    for extent in reversed(spatial):
        indices.append(rest % extent)
        rest, size = rest // extent, size * extent
    found, step = rest * size, 1
    for index, extent in zip(reversed(indices), spatial, strict=True):
        found, step = found + index * step, step * extent
    return found
