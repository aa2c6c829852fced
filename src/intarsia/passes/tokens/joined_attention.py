"""Attention written as products and a softmax becomes intarsia::token_attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr, Function
from intarsia.op import call
from intarsia.op.call import absent
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_attention_op import ATTENTION_OF_TOKENS
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import dtype_of, int_attr, operator_name
from intarsia.passes.tokens.score_bias import SidedBias, applied, scalar_bias, sided_bias
from intarsia.passes.tokens.token_twins import LENGTHS, TokenTwins

_EXCLUDES: Final = -1e30
"""Adding so low a number to a score rounds to that number: it is the same as replacing the score."""
_TOKENS, _HEADS, _RANK = LENGTHS[0], 1, 4


def with_joined_attention(twins: TokenTwins) -> Function:
    """Return the program with token_attention for each product of a softmax over tokens that is attention.

    Scores may be scaled, and biased or masked by what depends on the key, and on whether it is behind the
    query. Other products are left as they are. Gathers of all tokens in their order become views.
    """
    done: dict[Expr, Expr] = {}

    def rule(node: Expr, current: Expr) -> Expr:
        match operator_name(node), node:
            case "MatMul", Call():
                return _attention(node, twins, done) or current
            case "Gather", Call():
                return _view(node, current, twins) or current
            case _:
                return current

    return rewrite_original(twins.function, rule, done.__setitem__)


@dataclass(frozen=True, slots=True)
class _Scores:
    """Scores scale * q k^T + bias; with `replaces` the bias of later keys stands in place of theirs."""

    product: Call
    scale: float = 1.0
    bias: SidedBias | None = None
    replaces: bool = False


def _attention(node: Call, twins: TokenTwins, done: Mapping[Expr, Expr]) -> Call | None:
    softmax, value = node.args
    if (
        operator_name(softmax) != "Softmax"
        or not isinstance(softmax, Call)
        or dtype_of(value) is not DType.FLOAT32
    ):
        return None
    if int_attr(softmax.attrs, "axis", -1) not in (-1, _RANK - 1):
        return None
    scores = _scores(softmax.args[0], twins, done)
    if scores is None:
        return None
    query, key = scores.product.args
    q, k, v = (twins.shape(item, _TOKENS) for item in (query, key, value))
    if q is None or k is None or v is None or not len(q) == len(k) == len(v) == _RANK:
        return None
    is_of_tokens = q[2] == k[3] == v[2] == _TOKENS and q[0] == k[0] == v[0] == 1
    if not is_of_tokens or not q[_HEADS] == k[_HEADS] == v[_HEADS] or q[3] != k[2]:
        return None
    bias = scores.bias
    return call(
        ATTENTION_OF_TOKENS,
        done[query],
        call("Transpose", done[key], perm=(0, 1, 3, 2)),
        done[value],
        *((absent(), absent()) if bias is None else (bias.inside, bias.outside or absent())),
        domain=INTARSIA_DOMAIN,
        span=node.span,
        replaces=int(scores.replaces),
        scale=scores.scale,
    )


def _scores(node: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]) -> _Scores | None:
    """Return an expression as scores of a product of queries and keys."""
    if not isinstance(node, Call) or node in twins.free:
        return None
    match operator_name(node):
        case "MatMul":
            return _Scores(node)
        case "Identity":
            return _scores(node.args[0], twins, done)
        case "Add":
            for scores_arg, bias_arg in (node.args, node.args[::-1]):
                scores = _scores(scores_arg, twins, done)
                bias = None if scores is None else sided_bias(bias_arg, twins, done)
                if scores is not None and bias is not None:
                    total = bias if scores.bias is None else applied(node, scores.bias, bias)
                    return replace(scores, bias=total)
            return None
        case "Mul" | "Div" as name:
            return _scaled(node, name == "Div", twins, done)
        case "Where":
            return _masked(node, twins, done)
        case _:
            return None


def _scaled(node: Call, divides: bool, twins: TokenTwins, done: Mapping[Expr, Expr]) -> _Scores | None:
    for scores_arg, factor_arg in (node.args, node.args[::-1])[: 1 if divides else 2]:
        factor = twins.number(factor_arg)
        scores = None if factor is None else _scores(scores_arg, twins, done)
        if scores is None or factor is None:
            continue
        number = scalar_bias(factor, np.dtype(np.float32))
        bias = None if scores.bias is None else applied(node, scores.bias, number)
        return replace(scores, scale=scores.scale / factor if divides else scores.scale * factor, bias=bias)
    return None


def _masked(node: Call, twins: TokenTwins, done: Mapping[Expr, Expr]) -> _Scores | None:
    """Return scores of which some are replaced by a number."""
    condition, *branches = node.args
    mask = sided_bias(condition, twins, done)
    if mask is None:
        return None
    for at, is_kept in ((0, True), (1, False)):
        value = twins.number(branches[1 - at])
        scores = None if value is None else _scores(branches[at], twins, done)
        if scores is None or value is None:
            continue
        number = scalar_bias(value, np.dtype(np.float32))
        before = scores.bias or scalar_bias(0.0, np.dtype(np.float32))
        if _number(mask.inside) == float(is_kept) and _number(mask.later) == float(not is_kept):
            return replace(
                scores,
                bias=SidedBias(before.inside, number.inside, before.heads, before.is_by_key),
                replaces=True,
            )
        if value > _EXCLUDES or scores.replaces:
            return None
        return replace(scores, bias=applied(node, mask, *((before, number) if at == 0 else (number, before))))
    return None


def _number(node: Expr) -> float | None:
    return float(node.data.reshape(-1)[0]) if isinstance(node, Constant) and node.data.size == 1 else None


def _view(node: Call, current: Expr, twins: TokenTwins) -> Call | None:
    """Return a Gather of all tokens in their order as a view of its data; None for others."""
    data, indices = node.args
    if data in twins.free or indices not in twins.free or not isinstance(current, Call):
        return None
    before, after = twins.shape(data, _TOKENS), twins.shape(node, _TOKENS)
    if before is None or after is None or sum(extent == _TOKENS for extent in after) != 1:
        return None
    axis = int_attr(node.attrs, "axis", 0) % len(before)
    for tokens in (*LENGTHS, twins.most):
        value = twins.value(indices, tokens)
        if value is None or not np.array_equal(value.reshape(-1), np.arange(tokens)):
            return None
    if before[axis] != _TOKENS:
        return None
    target = [-1 if extent == _TOKENS else extent for extent in after]
    return call("Reshape", current.args[0], Constant(np.array(target, np.int64)), span=node.span)
