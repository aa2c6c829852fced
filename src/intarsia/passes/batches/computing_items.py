"""Rules for operators that compute: in which axis their results carry the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.ir import ABSENT, Call, TupleType
from intarsia.passes.batches.item_axes import (
    BatchAxis,
    ItemRule,
    attribute_axis,
    axis_of_first,
    extent_from_end,
    from_end,
    has_argument,
    of_each_result,
    rank_of,
    shape_of,
    value_of,
)


def same_axes(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Elements keep their positions."""
    return of_each_result(call, axis_of_first(axes))


def rows(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Each row of the first axis by itself."""
    return of_each_result(call, 0) if axis_of_first(axes) == 0 else None


def image(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The first axis are images, the rest of it is one."""
    return rows(call, axes) if shape_of(call)[0] == shape_of(call.args[0])[0] else None


def aligned(call: Call, axes: Sequence[int | None]) -> int | None:
    """Axes are aligned at their ends; what carries no batch is the same for all items."""
    rank = len(shape_of(call))
    present = [(arg, axis) for arg, axis in zip(call.args, axes, strict=True) if arg.checked_type != ABSENT]
    aligned = {axis + rank - len(shape_of(arg)) for arg, axis in present if axis is not None}
    if len(aligned) != 1:
        return None
    (batch,) = aligned
    is_same_for_all = (extent_from_end(arg, batch - rank) == 1 for arg, axis in present if axis is None)
    return batch if all(is_same_for_all) else None


def batch_normalization(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Not in training, where means are those of all items."""
    return image(call, axes) if call.attrs.get("training_mode", 0) == 0 else None


def max_pool(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The indices, its second result, count the elements of all items."""
    return None if isinstance(call.checked_type, TupleType) else image(call, axes)


def along_axis_of(default: int) -> ItemRule:
    """A rule for operators along the axis of the attribute, which may not be that of the batch."""

    def rule(call: Call, axes: Sequence[int | None]) -> BatchAxis:
        axis = axis_of_first(axes)
        if axis is None or axis == attribute_axis(call, default, rank_of(call)):
            return None
        return of_each_result(call, axis)

    return rule


def normalization(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Axes from that of the attribute on are normalized together."""
    axis = axis_of_first(axes)
    if axis is None or axis >= attribute_axis(call, -1, rank_of(call)):
        return None
    return of_each_result(call, axis)


def position(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """ArgMax and ArgMin: the axis of the attribute goes, unless it is kept."""
    axis, reduced = axis_of_first(axes), attribute_axis(call, 0, rank_of(call))
    if axis is None or axis == reduced:
        return None
    return axis if call.attrs.get("keepdims", 1) else axis - (reduced < axis)


def reduction(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Axes are argument 1; without them all are reduced."""
    axis, named = axis_of_first(axes), value_of(call, 1)
    if axis is None or named is None or named.size == 0:
        return None
    reduced = {int(item) % rank_of(call) for item in named.reshape(-1).tolist()}
    if axis in reduced:
        return None
    return axis if call.attrs.get("keepdims", 1) else axis - sum(item < axis for item in reduced)


def cumulation(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Argument 1 is the axis."""
    axis, along = axis_of_first(axes), value_of(call, 1)
    is_other = along is not None and axis != int(along.reshape(-1)[0]) % rank_of(call)
    return axis if is_other else None


def quantization(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Scales belong to the whole tensor, or to an axis that is not that of the batch."""
    axis = axis_of_first(axes)
    is_one = all(np.prod(shape_of(arg)) == 1 for arg in call.args[1:] if arg.checked_type != ABSENT)
    return axis if is_one or axis != attribute_axis(call, 1, rank_of(call)) else None


def product_of(left: int, right: int) -> ItemRule:
    """A rule for a product of matrices: rows, columns, or leading axes are items."""

    def rule(call: Call, axes: Sequence[int | None]) -> BatchAxis:
        if any(axis is not None for at, axis in enumerate(axes) if at not in {left, right}):
            return None
        ranks = rank_of(call, left), rank_of(call, right)
        if min(ranks) < 2:
            return None
        rank = max(ranks)
        first, second = from_end(axes[left], ranks[0]), from_end(axes[right], ranks[1])
        if first is not None and second is not None:
            return first + rank if first == second < -2 else None
        if first is not None:
            is_free = first == -2 or (first < -2 and extent_from_end(call.args[right], first) == 1)
            return first + rank if is_free else None
        assert second is not None
        is_free = second == -1 or (second < -2 and extent_from_end(call.args[left], second) == 1)
        return second + rank if is_free else None

    return rule


def gemm(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Rows of the first matrix are items; what is added has one row for all, or one for each."""
    rows = 1 if call.attrs.get("transA", 0) else 0
    if axes[0] != rows or axes[1] is not None:
        return None
    if not has_argument(call, 2):
        return 0
    is_free = axes[2] == 0 if axes[2] is not None else extent_from_end(call.args[2], -2) == 1
    return 0 if is_free else None


def attention(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Queries, keys, values and past ones are of the item; a mask is, or is the same for all."""
    is_of_item = all(axes[at] == 0 for at in (0, 1, 2, 4, 5) if has_argument(call, at))
    if not is_of_item or any(axis is not None for axis in axes[6:]):
        return None
    if has_argument(call, 3):
        is_mask_of_item = axes[3] == 0 and rank_of(call, 3) == 4
        if not (is_mask_of_item if axes[3] is not None else extent_from_end(call.args[3], -4) == 1):
            return None
    return of_each_result(call, 0)


def token_attention(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Items are texts, or tokens, each with its query, key and value; biases are its, or the same for all.

    A token reads the keys and values of all others of its text, for which kernels for any number of tokens
    provide.
    """
    if axes[:3] == [2, 2, 2] and all(axis in (None, 3) for axis in axes[3:]):
        return 2 if shape_of(call)[:1] == (1,) else None
    given = [(arg, axis) for arg, axis in zip(call.args, axes, strict=True) if arg.checked_type != ABSENT]
    is_of_text = axes[:3] == [0, 0, 0] and all(
        axis == 0 or (axis is None and extent_from_end(arg, -4) == 1) for arg, axis in given[3:]
    )
    return 0 if is_of_text else None


def token_append(_call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Texts or heads are items of the past and of what is new; first positions are of texts."""
    if axes[0] != axes[1] or axes[0] == 2:
        return None
    return axes[0] if len(axes) < 3 or axes[2] == axes[0] == 0 else None


def token_positions(_call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Texts are items of what is counted, and of the tokens, or there is one text."""
    return 0 if axes[0] == 0 and axes[1] in (0, None) else None


def token_pool(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The axis of the tokens goes, unless it is kept; items are in another one, as texts are."""
    (axis,), pooled = axes, attribute_axis(call, 0, rank_of(call))
    if axis is None or axis == pooled:
        return None
    return axis if call.attrs["keepdims"] else axis - (pooled < axis)


def token_window(_call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Texts are items; what weighs their tokens is the same for all."""
    return 0 if axis_of_first(axes) == 0 else None


def rotary_embedding(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Items are texts or tokens. Positions are of the item, and the tables of cosines and sines are not.

    Without positions the cosines and sines are of the item.
    """
    given = [axes[at] for at in range(len(axes)) if has_argument(call, at)]
    has_positions, tokens = has_argument(call, 3), rank_of(call) - 2
    for axis, of_positions in ((0, 0), (tokens, 1)):
        expected = [None, None, of_positions] if has_positions else [of_positions] * 2
        if given == [axis, *expected]:
            return axis
    return None


def grid_sample(_call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Images and grids are of the item."""
    return 0 if all(axis == 0 for axis in axes) else None


def recurrent(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """X is (steps, batch, width), lengths are (batch,), states are (directions, batch, width)."""
    if call.attrs.get("layout", 0):
        return None
    expected = (1, None, None, None, 0, 1, 1, None)
    if any(
        axis != place
        for axis, place, at in zip(axes, expected, range(8), strict=False)
        if has_argument(call, at)
    ):
        return None
    type_ = call.checked_type
    return (2, 1, 1)[: len(type_.fields)] if isinstance(type_, TupleType) else 2
