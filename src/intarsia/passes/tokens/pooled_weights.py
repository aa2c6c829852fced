"""Weights of tokens by a softmax over their text, and sums of tokens by such weights, as pools.

    Before: MatMul(Transpose(Softmax(s, axis=1)), x)     s (texts, tokens, rows), x (texts, tokens, width)
    After:  e = Exp(s - token_pool(s, max)); w = e / token_pool(e, sum)
            token_pool(Unsqueeze(w, 3) * Unsqueeze(x, 2), sum)

What attends from tokens to tokens is no such thing: it is one operator (`joined_attention`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import dtype_of, int_attr
from intarsia.passes.tokens.pool_call import pool
from intarsia.passes.tokens.token_twins import LENGTHS, TokenTwins

_TOKENS: Final = LENGTHS[0]
_FLOATS: Final = frozenset({DType.FLOAT32, DType.FLOAT64})
_MOST_ROWS: Final = 8
"""Maximum number of weights of a token: each has a product with the token in memory."""


def softmax_over_tokens(node: Call, current: Call, twins: TokenTwins, *, is_log: bool) -> Expr | None:
    """Return a Softmax or LogSoftmax over the tokens of each text as pools; None for other ones."""
    shape, axis = twins.shape(node, _TOKENS), twins.token_axis(node.args[0])
    if shape is None or axis is None or dtype_of(node) not in _FLOATS:
        return None
    if int_attr(node.attrs, "axis", -1) % len(shape) != axis:
        return None
    (x,) = current.args
    moved = call("Sub", x, pool(x, axis, "max"))
    powers = call("Exp", moved)
    total = pool(powers, axis, "sum")
    if is_log:
        return call("Sub", moved, call("Log", total), span=node.span)
    return call("Div", powers, total, span=node.span)


def sum_of_tokens(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return a product that sums over tokens, for few rows, as a pool; None for other products."""
    left, right = node.args
    shape, columns = twins.shape(left, _TOKENS), twins.shape(right, _TOKENS)
    if shape is None or columns is None or len(shape) != len(columns) or len(shape) < 3:
        return None
    rank, texts = len(shape), () if twins.texts is None else (0,)
    is_summed = twins.token_axis(left) == rank - 1 and twins.token_axis(right) == rank - 2
    if not is_summed or shape[:-2] != columns[:-2] or dtype_of(node) not in _FLOATS:
        return None
    if shape[-2] > _MOST_ROWS or any(twins.texts_axes(item) != texts for item in (left, right)):
        return None
    weights = call("Transpose", current.args[0], perm=(*range(rank - 2), rank - 1, rank - 2))
    parts = call("Mul", _unsqueezed(weights, rank), _unsqueezed(current.args[1], rank - 1))
    return pool(parts, rank - 2, "sum", keepdims=False)


def _unsqueezed(x: Expr, axis: int) -> Call:
    return call("Unsqueeze", x, Constant(np.array([axis], np.int64)))
