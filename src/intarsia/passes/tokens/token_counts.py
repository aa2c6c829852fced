"""Numbers that depend on the number of tokens, such as a mean's divisor or a scale by the length.

    Before: Div(total, Cast(Shape(x)[1]))
    After:  Div(total, token_pool(first rows of a table, last))

The table has in row n - 1 the number for n tokens, so that the row of the last token has that of its text.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, Expr, Op, SymbolicDim, TensorType, with_fields
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.infer import settled, typed
from intarsia.op.operator_facts import LayoutKind
from intarsia.op.operator_table import facts_of
from intarsia.passes.rules.tensor_facts import dims_of, operator_name
from intarsia.passes.tokens.pool_call import pool
from intarsia.passes.tokens.token_twins import LENGTHS, Array, TokenTwins
from intarsia.support.errors import IntarsiaError

_TOKENS: Final = LENGTHS[0]
_VIEWS: Final = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze"})


def counted_tokens(node: Call, current: Call, twins: TokenTwins) -> Call | None:
    """Return an elementwise call with numbers of each text in place of such ones; None for other calls."""
    if twins.past is not None or not _is_elementwise(node):
        return None
    ranks = [len(twins.shape(arg, _TOKENS) or ()) for arg in node.args if arg not in twins.free]
    args = list(current.args)
    for at, arg in enumerate(node.args):
        if arg in twins.free and _is_counted(arg, twins):
            rows = _rows(arg, max(ranks), twins)
            if rows is None:
                return None
            args[at] = pool(rows, 1, "last", keepdims=max(ranks) > 1)
    if tuple(args) == current.args:
        return None
    changed = typed(with_fields(current, args=tuple(args), checked_type=None))
    assert isinstance(changed, Call)
    return changed


def _values(node: Expr, twins: TokenTwins) -> list[Array | None]:
    """Return the values of a free expression for `LENGTHS`, and for the most tokens."""
    return [*(twins.value(node, tokens) for tokens in LENGTHS), twins.full_value(node)]


def _is_elementwise(node: Call) -> bool:
    return isinstance(node.op, Op) and facts_of(node.op).layout is LayoutKind.ELEMENTWISE


def _is_counted(arg: Expr, twins: TokenTwins) -> bool:
    """Return whether a free value is one number that depends on the number of tokens."""
    if isinstance(arg, Constant) or not isinstance(arg.checked_type, TensorType):
        return False
    values = _values(arg, twins)
    if any(value is None or value.size != 1 or value.dtype.kind not in "if" for value in values):
        return False
    return len({value.item() for value in values if value is not None}) > 1 and twins.is_same_for_all_texts(
        arg
    )


def _rows(arg: Expr, rank: int, twins: TokenTwins) -> Expr | None:
    """Return as many first rows of the table as a text has tokens, (1, tokens, 1, ...); None without a table.

    Args:
        arg: The number.
        rank: Number of axes of what is computed with it.
        twins: The program bound to numbers of tokens.
    """
    value, like = _by_length(arg, twins), _with_tokens(twins)
    if value is None or like is None or value.shape != (twins.most,):
        return None
    for tokens, item in zip((*LENGTHS, twins.most), _values(arg, twins), strict=True):
        if item is None or item.dtype != value.dtype or item.item() != value[tokens - 1]:
            return None
    param, axis = like
    table = Constant(value.reshape(1, -1, *(1,) * max(0, rank - 2)))
    rows_axis = Constant(np.array([1], np.int64))
    length = call("Shape", param, start=axis, end=axis + 1)
    return call("Slice", table, Constant(np.array([0], np.int64)), length, rows_axis)


def _with_tokens(twins: TokenTwins) -> tuple[Expr, int] | None:
    """Return a parameter with tokens and their axis."""
    for param in twins.function.params:
        axis = twins.token_axis(param)
        if axis is not None and isinstance((dims_of(param) or ())[axis], SymbolicDim):
            return param, axis
    return None


def _by_length(node: Expr, twins: TokenTwins) -> Array | None:
    """Return a number for each number of tokens from 1 to the most, (most,), or for all of them, ().

    None where it is computed in another way than by elementwise operators of the number of tokens.
    """
    values = _values(node, twins)
    first = values[0]
    if first is None or any(value is None or value.size != 1 for value in values):
        return None
    items = [value.item() for value in values if value is not None]
    if len(set(items)) == 1:
        return first.reshape(())
    if items == [*LENGTHS, twins.most]:
        return np.arange(1, twins.most + 1).astype(first.dtype)
    if not isinstance(node, Call):
        return None
    if operator_name(node) in _VIEWS:
        return _by_length(node.args[0], twins)
    args = [_by_length(arg, twins) for arg in node.args] if _is_elementwise(node) else [None]
    if any(arg is None for arg in args):
        return None
    numbers = tuple(Constant(arg) for arg in args if arg is not None)
    try:
        result = evaluate_call(settled(Call(node.op, numbers, node.attrs)))
    except IntarsiaError:
        return None
    return None if isinstance(result, tuple) else np.broadcast_to(result, (twins.most,))
