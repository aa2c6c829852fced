"""A program with operators on tokens in place of what is written by sizes: attention, pooling, views."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Call, DType, Expr, Function, Op, with_fields
from intarsia.op import call
from intarsia.op.infer import typed
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_append_op import APPENDED_TOKENS
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import dtype_of, int_attr, operator_name
from intarsia.passes.tokens.joined_attention import attention_of_operator, joined_attention
from intarsia.passes.tokens.pool_call import pool
from intarsia.passes.tokens.pooled_weights import softmax_over_tokens, sum_of_tokens
from intarsia.passes.tokens.token_counts import counted_tokens
from intarsia.passes.tokens.token_neighbours import neighbouring_tokens
from intarsia.passes.tokens.token_positions import counted_positions
from intarsia.passes.tokens.token_twins import LENGTHS, Array, TokenTwins
from intarsia.passes.tokens.token_views import same_elements, view_of_grid, view_of_tokens

_TOKENS: Final = LENGTHS[0]
_REDUCTIONS: Final = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "max", "ReduceMin": "min"}
_POOLS: Final = {"GlobalAveragePool": "mean", "GlobalMaxPool": "max"}
_IMAGE_RANK: Final = 3
"""Rank of the argument of a global pool whose only spatial axis is that of the tokens."""
_REDUCED: Final = frozenset({DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64})
_AVERAGED: Final = frozenset({DType.FLOAT32, DType.FLOAT64})


def with_token_operators(twins: TokenTwins) -> Function:
    """Return the program with operators on tokens; what is none of them is left as it is.

    What joins keys or values with those of the past becomes token_append. Sums, means, maxima and minima over
    tokens, and the choice of the first or the last one, become token_pool. Gathers of all tokens in their
    order become views. What reads neighbours of its tokens reads them from token_window.
    """
    done: dict[Expr, Expr] = {}

    joined = frozenset() if twins.past is None else frozenset(twins.past.joined)

    def rule(node: Expr, current: Expr) -> Expr:
        if node in joined and isinstance(current, Call):
            return _appended(node, current)
        if node in twins.free or not isinstance(node, Call) or not isinstance(current, Call):
            return current
        if operator_name(node) == "MatMul":
            return joined_attention(node, twins, done) or sum_of_tokens(node, current, twins) or current
        if operator_name(node) == "Attention":
            return attention_of_operator(node, twins, done) or current
        for rewrite in (_operator, counted_positions, neighbouring_tokens, counted_tokens):
            after = rewrite(node, current, twins)
            if after is not None:
                return after
        return current

    return rewrite_original(twins.function, rule, done.__setitem__)


def _operator(node: Call, current: Call, twins: TokenTwins) -> Expr | None:
    """Return what replaces a call other than a product; None for those that stay."""
    name = operator_name(node)
    match name:
        case "Identity" if is_joined(current.args[0]):
            return current.args[0]  # its type may name the number of keys, which is that of masks
        case "Gather":
            return view_of_tokens(node, current, twins) or _chosen(node, current, twins)
        case "GatherElements":
            return same_elements(node, current, twins)
        case "GatherND":
            return view_of_grid(node, current, twins)
        case "Slice":
            return _cut(node, current, twins)
        case "Softmax" | "LogSoftmax":
            return softmax_over_tokens(node, current, twins, is_log=name == "LogSoftmax")
        case "GlobalAveragePool" | "GlobalMaxPool":
            axis = twins.token_axis(node.args[0])
            is_last = axis == _IMAGE_RANK - 1
            return pool(current.args[0], axis, _POOLS[name], span=node.span) if axis and is_last else None
        case _ if name in _REDUCTIONS:
            return _reduced(node, current, twins, _REDUCTIONS[name])
        case _:
            return None


def _appended(node: Expr, current: Call) -> Call:
    """Return token_append in place of what joins the past with what is new."""
    args = current.args
    if operator_name(node) == "TensorScatter":
        joined, new, starts = args[:3]
        assert isinstance(joined, Call)
        args = (joined.args[0], new, starts)
    return call(APPENDED_TOKENS, *args, domain=INTARSIA_DOMAIN, span=node.span)


def is_joined(node: Expr) -> bool:
    """Return whether an expression is what joins keys or values with those of the past."""
    op = node.op if isinstance(node, Call) else None
    return isinstance(op, Op) and (op.domain, op.name) == (INTARSIA_DOMAIN, APPENDED_TOKENS)


def _reduced(node: Call, current: Call, twins: TokenTwins, mode: str) -> Call | None:
    """Return a reduction over tokens, and other axes, as a pool with the reduction over the others."""
    axis = twins.token_axis(node.args[0])
    axis = twins.key_axis(node.args[0]) if axis is None else axis
    if axis is None or dtype_of(node.args[0]) not in (_AVERAGED if mode == "mean" else _REDUCED):
        return None
    rank = len(twins.shape(node.args[0], _TOKENS) or ())
    named = twins.common(node.args[1], _as_integers) if len(node.args) > 1 else ()
    if named is None or (not named and int_attr(node.attrs, "noop_with_empty_axes", 0)):
        return None
    axes = {item % rank for item in named or range(rank)}
    if axis not in axes:
        return None
    keepdims = int_attr(node.attrs, "keepdims", 1) == 1
    if axes == {axis}:
        return pool(current.args[0], axis, mode, keepdims=keepdims, span=node.span)
    pooled = pool(current.args[0], axis, mode, span=node.span)
    rest = typed(with_fields(current, args=(pooled, *current.args[1:]), checked_type=None))
    assert isinstance(rest, Call)
    return rest


def _as_integers(value: Array | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(value.reshape(-1).tolist())


def _chosen(node: Call, current: Call, twins: TokenTwins) -> Call | None:
    """Return a Gather of the first or the last token as a pool."""
    data, indices = node.args
    axis = twins.token_axis(data)
    if axis is None or indices not in twins.free:
        return None
    if int_attr(node.attrs, "axis", 0) % len(twins.shape(data, _TOKENS) or ()) != axis:
        return None
    values = [twins.value(indices, tokens) for tokens in LENGTHS]
    shapes = {None if value is None else value.shape for value in values}
    if shapes not in ({()}, {(1,)}) or not twins.is_same_for_all_texts(indices):
        return None
    mode = _mode([int(value.item()) for value in values if value is not None])
    if mode is None:
        return None
    return pool(current.args[0], axis, mode, keepdims=shapes == {(1,)}, span=node.span)


def _cut(node: Call, current: Call, twins: TokenTwins) -> Call | None:
    """Return a Slice that leaves the first or the last token, and all of the other axes, as a pool."""
    axis = twins.token_axis(node.args[0])
    if axis is None:
        return None
    for tokens in LENGTHS:
        before, after = twins.shape(node.args[0], tokens), twins.shape(node, tokens)
        if before is None or after != (*before[:axis], 1, *before[axis + 1 :]):
            return None
    rank = len(twins.shape(node, _TOKENS) or ())
    starts = []
    for tokens in LENGTHS:
        begin = twins.value(node.args[1], tokens)
        if not all(map(twins.is_same_for_all_texts, (node.args[1], *node.args[3:4]))):
            return None
        named = twins.value(node.args[3], tokens) if len(node.args) > 3 else None
        if begin is None:
            return None
        given = range(begin.size) if named is None else (int(item) % rank for item in named.reshape(-1))
        starts += [
            min(int(begin.reshape(-1)[at]), tokens - 1) for at, item in enumerate(given) if item == axis
        ]
    mode = _mode(starts)
    return None if mode is None else pool(current.args[0], axis, mode, span=node.span)


def _mode(positions: list[int]) -> str | None:
    """Return which token positions name, one for each number of tokens; None for another one."""
    if len(positions) != len(LENGTHS):
        return None
    at = [position % tokens for position, tokens in zip(positions, LENGTHS, strict=True)]
    if not any(at):
        return "first"
    return "last" if at == [tokens - 1 for tokens in LENGTHS] else None
