"""The operator MultiHeadAttention: attention of projected queries, keys and values, packed or not."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.attention_core import (
    attend,
    causal_bias,
    merge_heads,
    padding_bias,
    split_heads,
    with_past,
)
from intarsia.frontend.onnx.contrib.definition import (
    REQUIRED,
    ContribNode,
    NoDefinitionError,
    Results,
    definition,
)
from intarsia.ir import Expr


@definition(
    "MultiHeadAttention",
    inputs=(1, 10),
    num_heads=REQUIRED,
    mask_filter_value=-10000.0,
    scale=None,
    unidirectional=0,
)
def multi_head_attention(node: ContribNode) -> Results:
    """Attention to keys and values of the same or another sequence, with those of the past in front."""
    if node.has(8) or node.has(9) or node.is_used(3):
        raise NoDefinitionError("a cache that is written in place, or the scores as a result")
    query, key, value = _heads(node)
    _refuse_causal_cross_attention(node, query, key)
    past_key, past_value = node.optional(6), node.optional(7)
    key, value = with_past(node, key, past_key), with_past(node, value, past_value)
    total, mask = node.size(key, 2), node.optional(4)
    masked = None
    if mask is not None:
        masked = padding_bias(node, mask, node.number("mask_filter_value"), query, total)
    if node.integer("unidirectional"):
        before = node.ints(0) if past_key is None else node.size(past_key, 2)
        masked = causal_bias(node, node.size(query, 2), before, total, query, masked)
    biases = (masked, node.optional(5))
    result = merge_heads(node, attend(node, query, key, value, node.attributes["scale"], biases))
    return [result, key, value][: len(node.outputs)]


def _refuse_causal_cross_attention(node: ContribNode, query: Expr, key: Expr) -> None:
    """Refuse a causal mask over more keys than queries.

    What onnxruntime 1.31 computes then is neither attention to the first keys nor to the last ones.

    Raises:
        NoDefinitionError: There are more keys.
    """
    steps, keys = node.static(query, 2), node.static(key, 2)
    if node.integer("unidirectional") and steps is not None and keys is not None and keys > steps:
        raise NoDefinitionError("a causal mask over more keys than queries")


def _heads(node: ContribNode) -> tuple[Expr, Expr, Expr]:
    """Queries, keys and values of shape [batch, head, step, size]."""
    query, heads = node.input(0), node.integer("num_heads")
    if node.rank(query) == 5:
        return _unpacked(node, _with_packed_bias(node, query), 3)  # type: ignore[return-value]  # three of them
    biases = _biases(node)
    query = split_heads(node, _added(node, query, biases[0]), heads)
    key = node.input(1)
    if node.rank(key) == 5:
        if node.has(3):
            raise NoDefinitionError("a bias of packed keys and values")
        packed_key, packed_value = _unpacked(node, key, 2)
        return query, packed_key, packed_value
    if node.rank(key) == 4:
        if node.has(3):
            raise NoDefinitionError("a bias of keys that are heads already")
        return query, key, node.input(2)
    value = node.input(2)
    key = split_heads(node, _added(node, key, biases[1]), heads)
    return query, key, split_heads(node, _added(node, value, biases[2]), heads)


def _added(node: ContribNode, x: Expr, bias: Expr | None) -> Expr:
    return x if bias is None else node.op("Add", x, bias)


def _biases(node: ContribNode) -> tuple[Expr | None, ...]:
    """The biases of queries, keys and values."""
    bias = node.optional(3)
    if bias is None:
        return None, None, None
    width, total = node.static(node.input(0), 2), node.static(bias, 0)
    if width is None or total is None:
        raise NoDefinitionError("the width of the bias is not known")
    return node.split(bias, 0, (width, width, total - 2 * width))


def _with_packed_bias(node: ContribNode, packed: Expr) -> Expr:
    """Packed queries, keys and values, [batch, step, head, 3, size], with their bias."""
    bias = node.optional(3)
    if bias is None:
        return packed
    heads, size = node.integer("num_heads"), node.static(packed, 4)
    if size is None:
        raise NoDefinitionError("the size of a head is not known")
    parts = node.transpose(node.reshape(bias, 3, heads, size), 1, 0, 2)
    return node.op("Add", packed, parts)


def _unpacked(node: ContribNode, packed: Expr, count: int) -> tuple[Expr, ...]:
    """The parts of [batch, step, head, count, size], each as [batch, head, step, size]."""
    parts = node.split(packed, 3, (1,) * count)
    return tuple(node.transpose(node.op("Squeeze", part, node.ints(3)), 0, 2, 1, 3) for part in parts)
