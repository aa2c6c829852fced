"""Attention with keys and values of the past as products and a softmax, in which the cache is recognised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import sqrt
from typing import Final

import numpy as np

from intarsia.ir import (
    ABSENT,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    post_order,
)
from intarsia.op import call, rewrite_typed
from intarsia.op.call import absent
from intarsia.passes.decoding.split_products import ints, size_of
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import dims_of, dtype_of, int_attr, operator_name, static_shape_of

_REARRANGEMENTS: Final = frozenset({"Unsqueeze", "Expand", "Reshape", "Transpose", "Identity"})
_RESULTS: Final = 3
"""Number of results of Attention with a past: the result, keys and values; the fourth are its scores."""
PLAIN_ATTRIBUTES: Final = (
    ("softcap", 0.0),
    ("left_window_size", -1),
    ("right_window_size", -1),
    ("qk_matmul_output_mode", 0),
)
"""Attributes and their defaults; forms with other values are left as they are."""


def with_attention_parts(function: Function) -> Function:
    """Return the function with parts in place of each Attention with a past; the same if there is none."""

    def in_parts(attention: Call) -> Expr:
        parts = _attention_parts(attention)
        return attention if parts is None else Tuple(parts)

    return _with_attention(function, in_parts)


def with_attention_to_joined(function: Function) -> Function:
    """Return the function whose Attention operators have heads as an axis, and no past of their own.

    Keys and values of the past are joined with new ones before; a causal mask with a past is an argument.
    """
    return _with_attention(function, _to_joined)


def _with_attention(function: Function, convert: Callable[[Call], Expr]) -> Function:
    """Return the function with another form of each Attention; results of tuples are read directly."""

    def rule(expr: Expr) -> Expr:
        match expr:
            case Call() if operator_name(expr) == "Attention":
                return convert(expr)
            case TupleGetItem(tuple_value=Tuple(fields=fields), index=index) if index < len(fields):
                return fields[index]
            case _:
                return expr

    after = rewrite_typed(function, rule)
    assert isinstance(after, Function)
    return after


def _to_joined(attention: Call) -> Expr:
    """Return an Attention in the form of `with_attention_to_joined`, itself if it has another form."""
    args = [arg if arg.checked_type != ABSENT else None for arg in attention.args]
    args += [None] * (7 - len(args))
    query, key, value, mask, past_key, past_value, lengths = args
    if query is None or key is None or value is None or (past_key is None) != (past_value is None):
        return attention
    if lengths is not None or any(
        attention.attrs.get(name, default) != default for name, default in PLAIN_ATTRIBUTES
    ):
        return attention
    has_heads, type_ = len(dims_of(query) or ()) == 4, attention.checked_type
    results = len(type_.fields) if isinstance(type_, TupleType) else 1
    if results > (_RESULTS if past_key is not None else 1) or (past_key is None and has_heads):
        return attention
    is_causal = int_attr(attention.attrs, "is_causal", 0)
    if not has_heads:
        heads, shared = (int_attr(attention.attrs, name, 0) for name in ("q_num_heads", "kv_num_heads"))
        query, key, value = _heads(query, heads), _heads(key, shared), _heads(value, shared)
    states: tuple[Expr, ...] = ()
    if past_key is not None and past_value is not None:
        key, value = call("Concat", past_key, key, axis=2), call("Concat", past_value, value, axis=2)
        states = key, value
        if is_causal:
            mask, is_causal = _with_causal(mask, _causal(query, past_key), query), 0
    size, given = (dims_of(query) or (None,))[-1], attention.attrs.get("scale")
    if not isinstance(given, float) and not isinstance(size, int):
        return attention
    scale = given if isinstance(given, float) else 1 / sqrt(size if isinstance(size, int) else 1)
    joined = call("Attention", query, key, value, mask or absent(), is_causal=is_causal, scale=scale)
    result = (
        joined if has_heads else call("Reshape", call("Transpose", joined, perm=(0, 2, 1, 3)), ints(0, 0, -1))
    )
    return Tuple((result, *states)) if isinstance(type_, TupleType) else result


def _with_causal(mask: Expr | None, visible: Expr, query: Expr) -> Expr:
    """Return a mask of Attention that hides later keys as well."""
    if mask is None:
        return visible
    if dtype_of(mask) is DType.BOOL:
        return call("And", mask, visible)
    dtype = dtype_of(query)
    assert dtype is not None
    return call("Where", visible, mask, Constant(np.array(-np.inf, dtype.numpy)))


def with_joined_attention(
    function: Function, joined: Collection[Expr], twins: Mapping[Expr, Expr]
) -> Function:
    """Return the function with parts in place of each Attention over keys and values that are joined before.

    Args:
        function: The function.
        joined: Keys and values of the past with new ones behind them.
        twins: The function's expressions bound to some sizes, so that their shapes are known.
    """
    marked = set(joined)
    for node in post_order(function):
        if operator_name(node) in _REARRANGEMENTS and isinstance(node, Call) and node.args[0] in marked:
            marked.add(node)

    def rule(node: Expr, current: Expr) -> Expr:
        if operator_name(node) != "Attention" or not isinstance(node, Call) or not isinstance(current, Call):
            return current
        shapes = [static_shape_of(twins[arg]) for arg in node.args[:3]]
        if not marked.intersection(node.args[1:3]) or not _is_plain(current):
            return current
        query, key, value = shapes
        if query is None or key is None or value is None or not len(query) == len(key) == len(value) == 4:
            return current
        mask = current.args[3] if len(current.args) > 3 and current.args[3].checked_type != ABSENT else None
        groups = query[1] // key[1]
        scores = _scores(current, current.args[0], _repeated(current.args[1], groups), query[3])
        return _weighted(_biased(scores, mask), _repeated(current.args[2], groups))

    return rewrite_original(function, rule)


def _is_plain(attention: Call) -> bool:
    """Whether it has one result, no past, and only a mask that decides what is visible."""
    others = [arg for arg in attention.args[4:] if arg.checked_type != ABSENT]
    has_other_form = any(attention.attrs.get(name, default) != default for name, default in PLAIN_ATTRIBUTES)
    is_causal = int_attr(attention.attrs, "is_causal", 0)
    return not (others or has_other_form or is_causal) and isinstance(attention.checked_type, TensorType)


def _attention_parts(attention: Call) -> tuple[Expr, Expr, Expr] | None:
    """Return the result, the keys and the values of an Attention with a past, None for other forms.

    A row of which all keys are masked gets some weights, where the operator gives 0: no token that counts has
    such a row.
    """
    args = [arg if arg.checked_type != ABSENT else None for arg in attention.args]
    args += [None] * (7 - len(args))
    query, key, value, mask, past_key, past_value, lengths = args
    if query is None or key is None or value is None or past_key is None or past_value is None:
        return None
    if lengths is not None or any(
        attention.attrs.get(name, default) != default for name, default in PLAIN_ATTRIBUTES
    ):
        return None
    heads, shared = (int_attr(attention.attrs, name, 0) for name in ("q_num_heads", "kv_num_heads"))
    if len(dims_of(query) or ()) == 3:
        query, key, value = _heads(query, heads), _heads(key, shared), _heads(value, shared)
    keys, values = call("Concat", past_key, key, axis=2), call("Concat", past_value, value, axis=2)
    sizes = [(dims_of(item) or ())[1::2] for item in (query, past_key, past_value)]
    if any(len(pair) != 2 or not all(isinstance(dim, int) for dim in pair) for pair in sizes):
        return None
    groups = int(sizes[0][0]) // int(sizes[1][0])  # type: ignore[arg-type]  # a number, as was checked
    scores = _scores(attention, query, _repeated(keys, groups), int(sizes[0][1]))  # type: ignore[arg-type]  # as above
    if int_attr(attention.attrs, "is_causal", 0):
        scores = _masked(scores, _causal(query, past_key))
    result = _weighted(_biased(scores, mask), _repeated(values, groups))
    if heads and len(dims_of(attention.args[0]) or ()) == 3:
        width = heads * int(sizes[2][1])  # type: ignore[arg-type]  # as above
        result = call("Reshape", call("Transpose", result, perm=(0, 2, 1, 3)), ints(0, 0, width))
    return result, keys, values


def _heads(tensor: Expr, heads: int) -> Expr:
    """Return (batch, tokens, heads * size) as (batch, heads, tokens, size)."""
    return call("Transpose", call("Reshape", tensor, ints(0, 0, heads, -1)), perm=(0, 2, 1, 3))


def _repeated(tensor: Expr, groups: int) -> Expr:
    """Return keys or values once for each query head of their group."""
    if groups == 1:
        return tensor
    _, shared, _, size = dims_of(tensor) or ()
    assert isinstance(shared, int)
    assert isinstance(size, int)
    grid = call("Expand", call("Unsqueeze", tensor, ints(2)), ints(1, 1, groups, 1, 1))
    return call("Reshape", grid, ints(0, shared * groups, -1, size))


def _biased(scores: Expr, mask: Expr | None) -> Expr:
    """Return scores with a mask, of truth values or addends."""
    if mask is None:
        return scores
    return _masked(scores, mask) if dtype_of(mask) is DType.BOOL else call("Add", scores, mask)


def _weighted(scores: Expr, values: Expr) -> Expr:
    return call("MatMul", call("Softmax", scores, axis=-1), values)


def _scores(attention: Call, query: Expr, keys: Expr, size: int) -> Expr:
    """Return the scaled scores, given the size of a head."""
    dtype = dtype_of(query)
    assert dtype is not None
    given = attention.attrs.get("scale")
    scale = Constant(np.array(given if isinstance(given, float) else 1 / sqrt(size), dtype.numpy))
    return call("MatMul", call("Mul", query, scale), call("Transpose", keys, perm=(0, 1, 3, 2)))


def _causal(query: Expr, past: Expr) -> Expr:
    """Return whether a key is not later than a query: (queries, keys)."""
    before = size_of(past, 2)
    zero, step = (Constant(np.array(number, np.int64)) for number in (0, 1))
    start = call("Squeeze", before, ints(0))
    stop = call("Squeeze", call("Add", before, size_of(query, 2)), ints(0))
    queries = call("Unsqueeze", call("Range", start, stop, step), ints(1))
    return call("LessOrEqual", call("Range", zero, stop, step), queries)


def lowest_of(dtype: DType) -> float:
    """Return what scores become where they are masked.

    Not -inf: a row that is masked everywhere would be NaN, and with it all that later layers add to it.
    """
    return -3e38 if dtype is DType.BFLOAT16 else float(np.finfo(dtype.numpy.name).min)


def _masked(scores: Expr, visible: Expr) -> Expr:
    dtype = dtype_of(scores)
    assert dtype is not None
    return call("Where", visible, scores, Constant(np.array(lowest_of(dtype), dtype.numpy)))
