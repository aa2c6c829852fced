"""The operator GroupQueryAttention, for whole prompts: without keys and values of the past."""

from __future__ import annotations

import math

from intarsia.frontend.onnx.contrib.attention_core import (
    attend,
    causal_bias,
    merge_heads,
    position_range,
    split_heads,
    visible_keys,
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
    "GroupQueryAttention",
    inputs=(7, 16),
    num_heads=REQUIRED,
    kv_num_heads=REQUIRED,
    do_rotary=0,
    rotary_interleaved=0,
    scale=None,
    softcap=0.0,
    local_window_size=-1,
    smooth_softmax=-1,
    qk_output=0,
    causal=1,
    kv_cache_bit_width=None,
    k_quant_type="NONE",
    v_quant_type="NONE",
    qk_norm_epsilon=1e-6,
    sliding_window_cache=0,
)
def group_query_attention(node: ContribNode) -> Results:
    """Causal attention in which groups of query heads share keys and values.

    With a past, each batch element has its own number of keys, and where new ones are written in the cache
    depends on it; that stays one operator.
    """
    _refuse_other_forms(node)
    query, key, value = _heads(node)
    if node.integer("do_rotary"):
        query, key = (_rotated(node, x) for x in (query, key))
    groups = node.integer("num_heads") // node.integer("kv_num_heads")
    steps = node.size(query, 2)
    result = attend(
        node,
        query,
        _repeated(node, key, groups),
        _repeated(node, value, groups),
        node.attributes["scale"],
        (_bias(node, query, steps),),
        node.number("softcap"),
    )
    return [merge_heads(node, result), key, value][: len(node.outputs)]


def _bias(node: ContribNode, query: Expr, steps: Expr) -> Expr | None:
    """Return the addend of the scores: it masks later keys, and adds the given bias to the others."""
    bias, none_before = node.optional(10), node.ints(0)
    if not node.integer("causal"):
        return bias
    if bias is None:
        return causal_bias(node, steps, none_before, steps, query)
    visible = visible_keys(node, steps, none_before, steps)
    return node.op("Where", visible, bias, node.scalar(-math.inf, query))


def _refuse_other_forms(node: ContribNode) -> None:
    past = node.optional(3)
    if past is not None and node.static(past, 2) != 0:
        raise NoDefinitionError("keys and values of the past")
    if any(node.has(position) for position in (11, 12, 13, 14, 15)) or node.is_used(3):
        raise NoDefinitionError("sinks, a quantised cache, normalised heads, or the scores as a result")
    if node.integer("local_window_size") > 0 or node.integer("smooth_softmax") > 0:
        raise NoDefinitionError("a local window, or a smooth softmax")


def _heads(node: ContribNode) -> tuple[Expr, Expr, Expr]:
    query, heads, shared = node.input(0), node.integer("num_heads"), node.integer("kv_num_heads")
    key, value = node.optional(1), node.optional(2)
    if key is None or value is None:
        width = node.static(query, 2)
        if width is None or width % (heads + 2 * shared):
            raise NoDefinitionError("the width of packed queries, keys and values is not known")
        size = width // (heads + 2 * shared)
        query, key, value = node.split(query, 2, (heads * size, shared * size, shared * size))
    return split_heads(node, query, heads), split_heads(node, key, shared), split_heads(node, value, shared)


def _rotated(node: ContribNode, x: Expr) -> Expr:
    positions = node.optional(9)
    if positions is None:
        steps = node.size(x, 2)
        positions = node.op("Expand", position_range(node, steps), node.concat([node.size(x, 0), steps], 0))
    return node.op(
        "RotaryEmbedding",
        x,
        node.input(7),
        node.input(8),
        positions,
        interleaved=node.integer("rotary_interleaved"),
    )


def _repeated(node: ContribNode, x: Expr, groups: int) -> Expr:
    """Keys or values of shared heads, once for each query head of their group."""
    if groups == 1:
        return x
    shared, size = node.static(x, 1), node.static(x, 3)
    if shared is None or size is None:
        raise NoDefinitionError("the size of a head is not known")
    column = node.op("Unsqueeze", x, node.ints(2))
    grid = node.op("Expand", column, node.ints(1, 1, groups, 1, 1))
    return node.op(
        "Reshape", grid, node.concat([node.ints(0, shared * groups), node.size(x, 2), node.ints(size)], 0)
    )
