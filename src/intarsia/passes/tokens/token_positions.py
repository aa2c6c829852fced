"""Positions that are counted in masks, or from a first one, become intarsia::token_positions."""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import Call, DType, Expr, SymbolicDim, Var
from intarsia.op import call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_positions_op import COUNTED_POSITIONS
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, int_attr, operator_name
from intarsia.passes.tokens.token_twins import LENGTHS, TokenTwins

_TOKENS: Final = LENGTHS[0]
_COUNTED: Final = (DType.INT32, DType.INT64)


def counted_positions(node: Call, current: Call, twins: TokenTwins) -> Call | None:
    """Return token_positions in place of a call; None for other calls.

    Args:
        node: CumSum of a mask, Slice of the last positions, Add of a Range, or Max of a sum less the
            number of tokens.
        current: The call over rewritten arguments.
        twins: The program bound to numbers of tokens.
    """
    if dtype_of(node) not in _COUNTED:
        return None
    match operator_name(node):
        case "CumSum":
            return _running_sum(node, current, twins)
        case "Slice":
            return _tail(node, current, twins)
        case "Add":
            return _counted_from_first(node, current, twins)
        case "Max":
            return _start(node, current, twins)
        case _:
            return None


def _positions(mode: str, x: Expr, twins: TokenTwins, like: Expr | None = None) -> Call | None:
    tokens = _any_tokens(twins) if like is None else like
    if tokens is None:
        return None
    return call(COUNTED_POSITIONS, x, tokens, domain=INTARSIA_DOMAIN, mode=mode)


def _any_tokens(twins: TokenTwins) -> Var | None:
    """Return a parameter (texts or 1, tokens, ...); None if there is none."""
    for param in twins.function.params:
        dims = dims_of(param) or ()
        first = SymbolicDim(twins.texts) if twins.texts is not None else 1
        has_rows = len(dims) > 1 and dims[0] == first and isinstance(dims[1], SymbolicDim)
        if has_rows and twins.token_axis(param) == 1:
            return param
    return None


def _is_row(node: Expr, twins: TokenTwins, *counts: int) -> bool:
    """Return whether a tensor is (texts, n) for one of some numbers n where texts have `_TOKENS` tokens."""
    shape, axes = twins.shape(node, _TOKENS), twins.texts_axes(node)
    return shape in {(1, count) for count in counts} and axes == (() if twins.texts is None else (0,))


def _running_sum(node: Call, current: Call, twins: TokenTwins) -> Call | None:
    axis = twins.common(node.args[1], lambda value: None if value is None else int(value.item()))
    is_plain = not any(int_attr(node.attrs, name, 0) for name in ("exclusive", "reverse"))
    if not is_plain or axis not in (1, -1) or not _is_row(node, twins, _TOKENS, twins.keys_of(_TOKENS)):
        return None
    if 1 not in (twins.token_axis(node), twins.key_axis(node)):
        return None
    return _positions("sum", current.args[0], twins, current.args[0])


def _tail(node: Call, current: Call, twins: TokenTwins) -> Call | None:
    data = node.args[0]
    if twins.past is None or not _is_row(node, twins, _TOKENS) or twins.key_axis(data) != 1:
        return None
    for tokens in LENGTHS:
        starts = twins.value(node.args[1], tokens) if node.args[1] in twins.free else None
        if starts is None or starts.size != 1 or twins.shape(node, tokens) != (1, tokens):
            return None
        if int(starts.item()) not in (twins.past_of(tokens), -tokens):
            return None
    return _positions("tail", current.args[0], twins)


def _counted_from_first(node: Call, current: Call, twins: TokenTwins) -> Call | None:
    if not _is_row(node, twins, _TOKENS):
        return None
    for at in (0, 1):
        first, counted = node.args[at], node.args[1 - at]
        if first not in twins.free and _is_row(first, twins, 1) and twins.counts(counted, -1):
            return _positions("positions", current.args[at], twins)
    return None


def _start(node: Call, current: Call, twins: TokenTwins) -> Call | None:
    """Return what is left of a number for each text, at least 0, without the number of tokens."""
    zeros = [at for at, arg in enumerate(node.args) if arg in twins.free and twins.number(arg) == 0]
    if len(node.args) != 2 or len(zeros) != 1:
        return None
    difference, rewritten = (call.args[1 - zeros[0]] for call in (node, current))
    if operator_name(difference) != "Sub" or not isinstance(difference, Call):
        return None
    if not isinstance(rewritten, Call) or difference.args[1] not in twins.free:
        return None
    counts, tokens = difference.args
    shape = twins.shape(counts, _TOKENS)
    if shape != (1,) or counts in twins.free or twins.texts_axes(counts) not in ((), (0,)):
        return None
    for length in LENGTHS:
        value = twins.value(tokens, length)
        if value is None or not np.array_equal(value.reshape(-1), [length]):
            return None
    return _positions("start", rewritten.args[0], twins)
