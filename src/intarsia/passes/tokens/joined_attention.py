"""Attention written as products and a softmax becomes intarsia::token_attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np

from intarsia.ir import ABSENT, Call, Constant, DType, Expr, TensorType
from intarsia.op import call
from intarsia.op.call import absent
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_attention_op import APART, ATTENTION_OF_TOKENS
from intarsia.passes.decoding.attention_parts import PLAIN_ATTRIBUTES
from intarsia.passes.rules.tensor_facts import dtype_of, int_attr, operator_name
from intarsia.passes.tokens.joined_keys import JoinedKeys, joined_with_past
from intarsia.passes.tokens.score_bias import EXCLUDES, SidedBias, applied, scalar_bias, sided_bias
from intarsia.passes.tokens.token_twins import LENGTHS, TokenTwins

_TOKENS, _HEADS, _RANK = LENGTHS[0], 1, 4
_SWAPPED: Final = (0, 1, 3, 2)


@dataclass(frozen=True, slots=True)
class _Scores:
    """Scores scale * q k^T + bias; with `replaces` the bias of later keys stands in place of theirs."""

    product: Call
    scale: float = 1.0
    bias: SidedBias | None = None
    replaces: bool = False


def joined_attention(node: Call, twins: TokenTwins, done: Mapping[Expr, Expr]) -> Call | None:
    """Return token_attention in place of a product of a softmax over tokens; None for other products.

    Scores may be scaled, and biased or masked by what depends on the key, and on whether it is behind the
    query.

    Args:
        node: A MatMul.
        twins: The program bound to numbers of tokens.
        done: Replacement of each expression before this one.
    """
    weights, value = node.args
    softmax = _softmax_without_nan(weights, twins)
    if (
        operator_name(softmax) != "Softmax"
        or not isinstance(softmax, Call)
        or dtype_of(value) is not DType.FLOAT32
    ):
        return None
    if int_attr(softmax.attrs, "axis", -1) not in (-1, _RANK - 1):
        return None
    shape = twins.shape(softmax, _TOKENS)
    crosses = twins.source is not None and shape is not None and shape[-1] != _TOKENS
    twins = twins if crosses else twins.among_tokens()
    scores = _scores(softmax.args[0], twins, done)
    if scores is None or (crosses and not _is_by_key(scores.bias)):
        return None
    query, key = scores.product.args
    parts = (
        _past_parts(query, key, value, twins, done) if twins.past else _parts(query, key, value, twins, done)
    )
    if parts is None:
        return None
    return _attention(
        node,
        parts,
        scores.bias,
        scores.scale,
        replaces=scores.replaces,
        clears=softmax is not weights,
        crosses=crosses,
    )


def _softmax_without_nan(node: Expr, twins: TokenTwins) -> Expr:
    """Return x in place of Where(IsNaN(x), 0, x), as PyTorch's exporter writes it; others as they are.

    With finite queries and keys only rows without a visible key are NaN, which token_attention can clear.
    """
    match node:
        case Call(args=(Call(args=(tested,)) as test, zero, kept)) if tested is kept:
            is_same = operator_name(node) == "Where" and operator_name(test) == "IsNaN"
            return kept if is_same and twins.number(zero) == 0 else node
        case _:
            return node


def _is_by_key(bias: SidedBias | None) -> bool:
    """Return whether a bias is the same for all queries."""
    return bias is None or (bias.outside is None and bias.table is None and bias.starts is None)


def _attention(
    node: Call,
    parts: _Parts,
    bias: SidedBias | None,
    scale: float,
    *,
    replaces: bool = False,
    clears: bool = False,
    crosses: bool = False,
) -> Call:
    """Return token_attention in place of an expression."""
    others: list[Expr] = []
    if bias is not None:
        table = absent() if bias.table is None else bias.table.constant
        others = [bias.inside, bias.outside or absent(), table, bias.starts or absent()]
    return call(
        ATTENTION_OF_TOKENS,
        *parts.args,
        *others,
        domain=INTARSIA_DOMAIN,
        span=node.span,
        anchor=APART if crosses else "query" if bias is None or bias.table is None else bias.table.anchor,
        clears=int(clears),
        replaces=int(replaces),
        scale=scale * parts.scale,
    )


def attention_of_operator(node: Call, twins: TokenTwins, done: Mapping[Expr, Expr]) -> Call | None:
    """Return token_attention in place of the operator Attention; None for other forms.

    Args:
        node: An Attention, with keys and values of all tokens.
        twins: The program bound to numbers of tokens.
        done: Replacement of each expression before this one.
    """
    query, key, value, *others = node.args
    key_shape = twins.shape(key, _TOKENS)
    crosses = twins.source is not None and key_shape is not None and key_shape[-2] != _TOKENS
    twins = twins if crosses else twins.among_tokens()
    mask, *rest = [*(arg for arg in others), absent()]
    is_single = isinstance(node.checked_type, TensorType) and dtype_of(node) is DType.FLOAT32
    has_other_form = any(node.attrs.get(name, default) != default for name, default in PLAIN_ATTRIBUTES)
    if any(arg.checked_type != ABSENT for arg in rest) or not is_single or has_other_form:
        return None
    parts = _operator_parts(query, key, value, twins, done)
    bias: SidedBias | None = None
    if mask.checked_type != ABSENT:
        bias = _addend(mask, twins, done)
    q = twins.shape(query, _TOKENS)
    if parts is None or q is None or (bias is None and mask.checked_type != ABSENT):
        return None
    if crosses and (int_attr(node.attrs, "is_causal", 0) or not _is_by_key(bias)):
        return None
    if int_attr(node.attrs, "is_causal", 0):
        if twins.past is not None or (bias is not None and bias.starts is not None):
            return None  # it counts from the first key there
        none, hidden = (scalar_bias(number, np.dtype(np.float32)) for number in (0.0, -np.inf))
        bias = replace(bias or none, outside=hidden.inside)
    scale = node.attrs.get("scale")
    factor = scale if isinstance(scale, float) else 1 / sqrt(q[3])
    return _attention(node, parts, bias, factor, clears=mask.checked_type != ABSENT, crosses=crosses)


def _operator_parts(
    query: Expr, key: Expr, value: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]
) -> _Parts | None:
    """Return the arguments of the operator Attention, whose keys are stored as values are."""
    if twins.past is not None:
        keys = joined_with_past(key, twins)
        is_plain = keys is not None and not keys.is_transposed
        return _joined_parts(query, keys, value, twins, done) if is_plain else None
    q, k, v = (twins.shape(arg, _TOKENS) for arg in (query, key, value))
    if q is None or k is None or v is None or not len(q) == len(k) == len(v) == _RANK:
        return None
    is_of_tokens = q[2] == _TOKENS and k[2] == v[2] == twins.keys_of(_TOKENS) and q[0] == k[0] == v[0] == 1
    if not is_of_tokens or k[_HEADS] != v[_HEADS] or q[_HEADS] % k[_HEADS]:
        return None
    return _Parts((done[query], done[key], done[value]))


def _addend(mask: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]) -> SidedBias | None:
    """Return a mask of Attention as a bias: truth values hide keys, where others are added.

    A mask with fewer keys hides the others, so it has to have all.
    """
    shape = twins.shape(mask, _TOKENS)
    bias = None if shape is None or shape[-1] != twins.keys_of(_TOKENS) else sided_bias(mask, twins, done)
    if bias is None or dtype_of(mask) is not DType.BOOL:
        return bias if bias is None or dtype_of(mask) is DType.FLOAT32 else None
    none, hidden = (Constant(np.array(number, np.float32)) for number in (0.0, -np.inf))
    outside = None if bias.outside is None else call("Where", bias.outside, none, hidden)
    return replace(bias, inside=call("Where", bias.inside, none, hidden), outside=outside)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Queries, keys and values, and a factor of their products."""

    args: tuple[Expr, Expr, Expr]
    scale: float = 1.0


def _parts(
    query: Expr, key: Expr, value: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]
) -> _Parts | None:
    """Return the arguments of attention among new tokens alone, or to the tokens of other texts."""
    q, k, v = (twins.shape(item, _TOKENS) for item in (query, key, value))
    if q is None or k is None or v is None or not len(q) == len(k) == len(v) == _RANK:
        return None
    is_of_tokens = q[2] == _TOKENS and k[3] == v[2] == twins.keys_of(_TOKENS) and q[0] == k[0] == v[0] == 1
    if not is_of_tokens or not q[_HEADS] == k[_HEADS] == v[_HEADS] or q[3] != k[2]:
        return None
    return _Parts((done[query], call("Transpose", done[key], perm=_SWAPPED), done[value]))


def _past_parts(
    query: Expr, key: Expr, value: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]
) -> _Parts | None:
    """Return the arguments of attention to keys and values that are joined with those of the past."""
    keys = joined_with_past(key, twins)
    is_right = keys is not None and keys.is_transposed
    return _joined_parts(query, keys, value, twins, done) if is_right else None


def _joined_parts(
    query: Expr, keys: JoinedKeys | None, value: Expr, twins: TokenTwins, done: Mapping[Expr, Expr]
) -> _Parts | None:
    """Return the arguments of attention, given its keys of all tokens."""
    values, q = joined_with_past(value, twins), twins.shape(query, _TOKENS)
    if keys is None or values is None or q is None or len(q) != _RANK:
        return None
    if values.is_transposed or keys.groups != values.groups or values.scale != 1:
        return None
    k, v = (twins.shape(item.joined, _TOKENS) for item in (keys, values))
    if k is None or v is None or q[0] != 1 or q[2:] != (_TOKENS, k[3]) or k[:3] != v[:3]:
        return None
    is_grouped = q[_HEADS] == k[_HEADS] * keys.groups or (keys.groups == 1 and q[_HEADS] % k[_HEADS] == 0)
    if not is_grouped or k[2] != twins.keys_of(_TOKENS):
        return None
    return _Parts((done[query], done[keys.joined], done[values.joined]), keys.scale)


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
                    return None if total is None else replace(scores, bias=total)
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
        if scores.bias is not None and bias is None:
            return None
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
            if before.outside is not None and before.starts is not mask.starts:
                return None
            return replace(
                scores,
                bias=replace(before, outside=number.inside, starts=mask.starts),
                replaces=True,
            )
        if value > EXCLUDES or scores.replaces:
            return None
        bias = applied(node, mask, *((before, number) if at == 0 else (number, before)))
        return None if bias is None else replace(scores, bias=bias)
    return None


def _number(node: Expr) -> float | None:
    return float(node.data.reshape(-1)[0]) if isinstance(node, Constant) and node.data.size == 1 else None
