"""Rules for operators that move elements: in which axis their results carry the batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from intarsia.ir import Call
from intarsia.passes.batches.item_axes import (
    ITEMS,
    BatchAxis,
    attribute_axis,
    axis_of_first,
    extent_from_end,
    has_argument,
    rank_of,
    shape_of,
    sized_axis,
    value_of,
)


def reshaped(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Elements stay in their order: the batch is in the axis that begins where it began before."""
    axis = axis_of_first(axes)
    if axis is None:
        return None
    before, after = shape_of(call.args[0]), shape_of(call)
    outside = math.prod(before[:axis])
    fitting = (
        at
        for at, extent in enumerate(after)
        if extent and extent % ITEMS == 0 and math.prod(after[:at]) == outside
    )
    return next(fitting, None)


def transposed(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Axes change their order."""
    axis, perm = axes[0], call.attrs.get("perm")
    if axis is None:
        return None
    return perm.index(axis) if isinstance(perm, tuple) else rank_of(call) - 1 - axis


def concatenation(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Arguments follow each other in an axis that is not that of the batch."""
    axis = axes[0]
    is_one = all(item == axis for item in axes)
    return axis if is_one and axis != attribute_axis(call, 0, len(shape_of(call))) else None


def gathered(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Indices take the place of the axis along which is gathered."""
    data, indices = axes[:2]
    along = attribute_axis(call, 0, rank_of(call))
    if data is None:
        return None if indices is None else along + indices
    if indices is not None or data == along:
        return None
    return data if data < along else data + rank_of(call, 1) - 1


def gathered_elements(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Arguments have the same axes, one of which is that of the attribute."""
    axis = axes[0]
    is_one = all(item == axis for item in axes)
    return axis if is_one and axis != attribute_axis(call, 0, rank_of(call)) else None


def gathered_tuples(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Leading axes are those of both arguments, then indices are tuples in their last axis."""
    data, indices = axes[:2]
    leading = call.attrs.get("batch_dims", 0)
    assert isinstance(leading, int)
    if indices is None or indices == rank_of(call, 1) - 1:
        return None
    if data is None:
        return indices if indices >= leading else None
    return indices if data == indices < leading else None


def constant_of_shape(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The same value for all items."""
    return sized_axis(call) if axes[0] is None else None


def expanded(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """What carries no batch is repeated for each item."""
    if axes[1] is not None:
        return None
    rank = len(shape_of(call))
    sized = sized_axis(call)
    if axes[0] is not None:
        return sized if sized == axes[0] + rank - rank_of(call) else None
    return sized if sized is not None and extent_from_end(call.args[0], sized - rank) == 1 else None


def tiled(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """An item is repeated within, or what carries no batch is repeated for each item."""
    repeats = value_of(call, 1)
    if repeats is None or axes[1] is not None:
        return None
    sized = sized_axis(call)
    if axes[0] is not None:
        return sized if sized == axes[0] and int(repeats[sized]) == 1 else None
    return sized if sized is not None and shape_of(call.args[0])[sized] == 1 else None


def one_hot(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """A new axis has a position for each class."""
    axis, along = axis_of_first(axes), attribute_axis(call, -1, len(shape_of(call)))
    return None if axis is None else axis + (along <= axis)


def squeezed(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Axes of one element go."""
    axis, gone = axis_of_first(axes), value_of(call, 1)
    if axis is None:
        return None
    if gone is None:
        before = shape_of(call.args[0])
        return axis - sum(extent == 1 for extent in before[:axis])
    return axis - sum(int(item) % rank_of(call) < axis for item in gone.reshape(-1).tolist())


def unsqueezed(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Axes of one element are added."""
    axis, added = axis_of_first(axes), value_of(call, 1)
    if axis is None or added is None:
        return None
    rank = len(shape_of(call))
    places = {int(item) % rank for item in added.reshape(-1).tolist()}
    kept = [at for at in range(rank) if at not in places]
    return kept[axis]


def sliced(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Argument 3 names the axes, the first ones without it."""
    axis, named, starts = axis_of_first(axes), value_of(call, 3), value_of(call, 1)
    if axis is None or starts is None or (has_argument(call, 3) and named is None):
        return None
    cut = range(starts.size) if named is None else [int(item) % rank_of(call) for item in named.tolist()]
    return None if axis in cut else axis


def padded(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The axis of the batch gets no elements, at neither end."""
    axis, pads, named = axis_of_first(axes), value_of(call, 1), value_of(call, 3)
    if axis is None or pads is None or (has_argument(call, 3) and named is None):
        return None
    padded = range(rank_of(call)) if named is None else [int(item) % rank_of(call) for item in named.tolist()]
    count = len(padded)
    added = [int(pads[at]) or int(pads[at + count]) for at, item in enumerate(padded) if item == axis]
    return None if any(added) else axis


def resized(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The axis of the batch keeps its extent."""
    axis = axis_of_first(axes)
    return axis if axis is not None and shape_of(call)[axis] == shape_of(call.args[0])[axis] else None


def trilu(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The last two axes are matrices."""
    axis = axis_of_first(axes)
    return axis if axis is not None and axis < rank_of(call) - 2 else None


def feature_extractor(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The same columns of each row, or columns of a matrix of all items by the indices of each."""
    data, indices = axes
    if data is None:
        return len(shape_of(call)) - 1 if indices == 0 else None
    return data if indices is None and data < rank_of(call) - 1 else None


def side_by_side(_: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Matrices of items side by side (FeatureVectorizer)."""
    return 0 if all(axis == 0 for axis in axes) else None
