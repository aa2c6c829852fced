"""The operator Attention: self-attention with its input projection."""

from __future__ import annotations

from typing import Any

from intarsia.frontend.onnx.contrib.attention_core import (
    attend,
    causal_bias,
    merge_heads,
    padding_bias,
    split_heads,
    with_past,
)
from intarsia.frontend.onnx.contrib.contrib_node import dtype_of
from intarsia.frontend.onnx.contrib.definition import (
    REQUIRED,
    ContribNode,
    NoDefinitionError,
    Results,
    definition,
)
from intarsia.ir import Expr

SELF_ATTENTION: dict[str, Any] = {
    "num_heads": REQUIRED,
    "unidirectional": 0,
    "mask_filter_value": -10000.0,
    "scale": None,
    "do_rotary": 0,
    "past_present_share_buffer": 0,
}
"""Attributes of operators of self-attention, with their defaults."""


@definition("Attention", inputs=(2, 7), qkv_hidden_sizes=None, rotary_embedding_dim=0, **SELF_ATTENTION)
def attention(node: ContribNode) -> Results:
    """Project the input to queries, keys and values, and let each head attend."""
    projected = node.op("MatMul", node.input(0), node.input(1))
    bias = node.optional(2)
    if bias is not None:
        projected = node.op("Add", projected, bias)
    if node.has(6):
        raise NoDefinitionError("a buffer that past and present share")
    return self_attention(
        node,
        projected,
        node.attributes["qkv_hidden_sizes"],
        node.optional(3),
        node.optional(4),
        node.optional(5),
    )


def self_attention(
    node: ContribNode,
    projected: Expr,
    sizes: tuple[int, ...] | None,
    mask: Expr | None,
    past: Expr | None,
    bias: Expr | None,
) -> Results:
    """Attention of projected queries, keys and values that lie side by side.

    Args:
        node: The node, with the attributes `SELF_ATTENTION`.
        projected: Projected input, shape [batch, step, queries + keys + values].
        sizes: Widths of queries, keys and values; None if they are equal.
        mask: A padding mask in one of the forms of `padding_bias`.
        past: Keys and values before, of shape [2, batch, head, past, size].
        bias: Addend of the scores; None for none.
    """
    if node.integer("do_rotary") or node.integer("past_present_share_buffer"):
        raise NoDefinitionError("rotary embedding, or a buffer that past and present share")
    width = node.static(projected, 2)
    if width is None:
        raise NoDefinitionError("the width of the projection is not known")
    parts = node.split(projected, 2, sizes or (width // 3,) * 3)
    query, key, value = (split_heads(node, part, node.integer("num_heads")) for part in parts)
    if past is not None:
        before = [node.op("Squeeze", half, node.ints(0)) for half in node.split(past, 0, (1, 1))]
        key, value = with_past(node, key, before[0]), with_past(node, value, before[1])
    result = merge_heads(
        node,
        attend(
            node, query, key, value, node.attributes["scale"], _biases(node, query, key, mask, past, bias)
        ),
    )
    if not node.is_used(1):
        return [result]
    both = [node.op("Unsqueeze", x, node.ints(0)) for x in (key, value)]
    return [result, node.op("Concat", *both, axis=0)]


def _biases(
    node: ContribNode, query: Expr, key: Expr, mask: Expr | None, past: Expr | None, bias: Expr | None
) -> tuple[Expr | None, ...]:
    total = node.size(key, 2)
    masked = None
    if mask is not None:
        masked = padding_bias(node, mask, node.number("mask_filter_value"), query, total)
    if node.integer("unidirectional"):
        before = node.ints(0) if past is None else node.size(past, 3)
        masked = causal_bias(node, node.size(query, 2), before, total, query, masked)
    assert dtype_of(query)
    return masked, bias
