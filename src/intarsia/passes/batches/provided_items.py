"""Operators among the tokens of texts, which read other items, as kernels for any number of them can.

token_pool       the value of a text has all of its tokens
token_append     keys of all tokens have those of new tokens behind those of the past
token_attention  a token attends to keys, among them those of the past
token_positions  the position of a token counts those before it
token_window     a token has its neighbours beside it
token_filter     a token sums up its neighbours
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.ir import Call, Op
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_append_op import APPENDED_TOKENS
from intarsia.op.token_attention_op import ATTENTION_OF_TOKENS
from intarsia.op.token_filter_op import FILTER_OF_TOKENS
from intarsia.op.token_pool_op import POOL_OF_TOKENS
from intarsia.op.token_positions_op import COUNTED_POSITIONS
from intarsia.op.token_window_op import WINDOW_OF_TOKENS
from intarsia.passes.batches.item_axes import BatchAxis, attribute_axis, rank_of, shape_of

_NEIGHBOURING: Final = frozenset({FILTER_OF_TOKENS, WINDOW_OF_TOKENS})
_ROWS: Final = 2
"""Axis of tokens in queries, keys and values."""


def is_provided_for(call: Call, axes: Sequence[BatchAxis]) -> bool:
    """Return whether an operator among tokens reads other items, as its kernels can.

    Args:
        call: Call of any operator.
        axes: Axes of the items of its arguments.
    """
    op = call.op
    if not isinstance(op, Op) or op.domain != INTARSIA_DOMAIN:
        return False
    if op.name == POOL_OF_TOKENS:
        return axes[0] == attribute_axis(call, 0, rank_of(call))
    if op.name in _NEIGHBOURING:
        return axes[0] == 1 and all(axis is None for axis in axes[1:])
    if op.name == APPENDED_TOKENS:
        return axes[0] is None and axes[1] in (None, _ROWS)
    if op.name == COUNTED_POSITIONS:
        is_sum = call.attrs["mode"] == "sum"
        return (
            axes[0] == 1
            if is_sum
            else axes[0] in (None, 1) and axes[1] in (None, 1) and any(axis is not None for axis in axes)
        )
    if op.name != ATTENTION_OF_TOKENS:
        return False
    query, key, value, *biases = axes
    if query is None:
        return key == value == _ROWS and all(axis in (None, 3) for axis in biases)
    is_with_past = shape_of(call.args[1])[_ROWS] != shape_of(call)[_ROWS] and shape_of(call)[0] == 1
    return is_with_past and query == _ROWS and not any(axis is not None for axis in axes[1:])


def provided_axis(call: Call, axes: Sequence[BatchAxis]) -> int | None:
    """Return the axis of the items of the result of such an operator; None if it has none.

    The items of attention are its queries. Keys of all tokens are items where past and new ones are not.
    """
    op = call.op
    assert isinstance(op, Op)
    if op.name == COUNTED_POSITIONS:
        is_of_keys = call.attrs["mode"] == "sum"
        has_tokens = call.attrs["mode"] in ("tail", "positions") and axes[1] is not None
        return 1 if is_of_keys or has_tokens else None
    if op.name in _NEIGHBOURING:
        return 1
    is_attending = op.name == ATTENTION_OF_TOKENS and axes[0] is not None
    is_joining = op.name == APPENDED_TOKENS and axes[1] is None
    return _ROWS if is_attending or is_joining else None
