"""Gathers that exporters write for masks and token types, of which nothing is left but a view or a number."""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, Expr
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import dtype_of, int_attr
from intarsia.passes.tokens.token_twins import LENGTHS, TEXTS, Array, TokenTwins

_TOKENS: Final = LENGTHS[0]


def view_of_tokens(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return a Gather of all tokens, or of all keys, in their order as a view; None for others."""
    data, indices = node.args
    if data in twins.free or indices not in twins.free:
        return None
    before, after = twins.shape(data, _TOKENS), twins.shape(node, _TOKENS)
    if before is None or after is None:
        return None
    axis = int_attr(node.attrs, "axis", 0) % len(before)
    twins = twins if before[axis] == twins.keys_of(_TOKENS) else twins.among_tokens()
    count = before[axis]
    if count != twins.keys_of(_TOKENS) or after.count(count) != 1:
        return None
    for tokens in (*LENGTHS, twins.most):
        value = twins.value(indices, tokens)
        if value is None or not np.array_equal(value.reshape(-1), np.arange(twins.keys_of(tokens))):
            return None
    if not twins.is_same_for_all_texts(indices):
        return _view_of_all_texts(node, current, twins)
    texts_before, texts_after = twins.texts_axes(data), twins.texts_axes(node)
    if texts_after is None or texts_before != texts_after or texts_after not in ((), (0,)):
        return None
    target = [-1 if extent == count else extent for extent in after]
    if texts_after:
        target[0] = 0
    return call("Reshape", current.args[0], Constant(np.array(target, np.int64)), span=node.span)


def _view_of_all_texts(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return a Gather of the tokens of all texts, in their order, from an axis of them as a view.

    So exporters write masks (texts, 1, 1, tokens): indices are text * tokens + token.
    """
    data, indices = node.args
    before, value = twins.shape(data, _TOKENS, TEXTS), twins.value(indices, _TOKENS, TEXTS)
    if before is None or value is None:
        return None
    axis, count = int_attr(node.attrs, "axis", 0) % len(before), TEXTS * twins.keys_of(_TOKENS)
    front, behind = before[:axis], before[axis + 1 :]
    if twins.texts_axes(data) != (axis,) or before[axis] != count:
        return None
    if not np.array_equal(value.reshape(-1), np.arange(count)):
        return None
    parts = [Constant(np.array(extents, np.int64)) for extents in (front, behind)]
    shape = call("Concat", parts[0], call("Shape", current.args[1]), parts[1], axis=0)
    return call("Reshape", current.args[0], shape, span=node.span)


def view_of_grid(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return a GatherND of all elements in their order as a view of its data; None for others.

    So PyTorch's exporter writes a mask (texts, tokens) with the axes of scores: indices are
    (texts, 1, 1, tokens, 2), pairs of a text and a token.
    """
    data, indices = node.args
    if data in twins.free or indices not in twins.free or int_attr(node.attrs, "batch_dims", 0):
        return None
    for texts in (1, 1 if twins.texts is None else TEXTS):
        for tokens in (*LENGTHS, *([twins.most] if texts == 1 else [])):
            shape, value = twins.shape(data, tokens, texts), twins.value(indices, tokens, texts)
            if shape is None or value is None or value.shape[-1:] != (len(shape),):
                return None
            grid = np.moveaxis(np.indices(shape), 0, -1)
            if not np.array_equal(value.reshape(-1, len(shape)), grid.reshape(-1, len(shape))):
                return None
    return call("Reshape", current.args[0], call("Shape", current.args[1], end=-1), span=node.span)


def same_elements(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return a GatherElements from equal numbers as that number for each index; None for others.

    So exporters write token types: RoBERTa's are gathered from a table of zeros at positions that depend on
    the tokens.
    """
    data, indices = node.args
    if data not in twins.free or indices in twins.free:
        return None
    number = twins.common(data, _only_value)
    dtype = dtype_of(data)
    if number is None or dtype is None:
        return None
    return call(
        "Expand", Constant(np.array(number, dtype.numpy)), call("Shape", current.args[1]), span=node.span
    )


def _only_value(value: Array | None) -> float | int | bool | None:
    """Return the number that all elements are; None if there are others."""
    if value is None or value.size == 0 or value.dtype.kind not in "biuf":
        return None
    number: float | int | bool = value.reshape(-1)[0].item()
    return number if bool((value == number).all()) else None
