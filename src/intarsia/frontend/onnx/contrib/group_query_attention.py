"""The operator GroupQueryAttention: causal attention with shared heads and a cache of keys and values."""

from __future__ import annotations

import math

from intarsia.frontend.onnx.contrib.attention_core import (
    attend,
    lowest_of,
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
from intarsia.ir import DType, Expr


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

    With a past, each batch element has its own number of valid keys, and new ones are written behind them.
    The present is as long as the past, or as all tokens if they do not fit into it.
    """
    _refuse_other_forms(node)
    query, key, value = _heads(node)
    steps = node.size(query, 2)
    first = _first_positions(node, steps)
    if node.integer("do_rotary"):
        positions = _positions(node, query, steps, first)
        query, key = (_rotated(node, x, positions) for x in (query, key))
    if first is not None:
        key, value = (
            _written(node, past, x, first) for past, x in ((node.input(3), key), (node.input(4), value))
        )
    groups = node.integer("num_heads") // node.integer("kv_num_heads")
    bias = node.optional(10)
    if first is not None and bias is not None:  # it has a column for each token, not for all room
        bias = _with_room(node, bias, 3, node.op("Sub", node.size(key, 2), _total(node)))
    result = attend(
        node,
        query,
        _repeated(node, key, groups),
        _repeated(node, value, groups),
        node.attributes["scale"],
        (_masking_bias(node, query, _visible(node, steps, first, node.size(key, 2)), bias),),
        node.number("softcap"),
    )
    return [merge_heads(node, result), key, value][: len(node.outputs)]


def _masking_bias(node: ContribNode, query: Expr, visible: Expr | None, bias: Expr | None) -> Expr | None:
    """Return the addend of the scores: the given bias, and a mask of what is not visible."""
    if visible is None:
        return bias
    if bias is None:
        return node.op("Where", visible, node.scalar(0, query), node.scalar(lowest_of(query), query))
    return node.op("Where", visible, bias, node.scalar(-math.inf, query))


def _visible(node: ContribNode, steps: Expr, first: Expr | None, total: Expr) -> Expr | None:
    """Return whether a key is no later than a step and within its window.

    The shape is [step, total], or with a past [batch, 1, step, total].
    """
    if not node.integer("causal"):
        return None
    before = node.ints(0) if first is None else node.reshape(first, -1, 1, 1, 1)
    visible = visible_keys(node, steps, before, total)
    window = node.integer("local_window_size")
    if window < 0:
        return visible
    too_early = visible_keys(node, steps, node.op("Sub", before, node.ints(window)), total)
    return node.op("And", visible, node.op("Not", too_early))


def _first_positions(node: ContribNode, steps: Expr) -> Expr | None:
    """Return the position of the first new token of each batch element, int64; None without a past.

    A prompt that is shorter than the longest one is padded behind, and has no past either.
    """
    past = node.optional(3)
    if past is None or node.static(past, 2) == 0:
        return None
    last = node.input(5) if node.rank(node.input(5)) == 1 else node.reshape(node.input(5), -1)
    lengths = node.op("Add", node.cast(last, DType.INT64), node.ints(1))
    return node.op("Max", node.op("Sub", lengths, steps), node.ints(0))


def _total(node: ContribNode) -> Expr:
    """Return the number of all tokens of the longest batch element, an int64 tensor of shape (1,)."""
    return node.cast(node.reshape(node.input(6), 1), DType.INT64)


def _written(node: ContribNode, past: Expr, new: Expr, first: Expr) -> Expr:
    """Return the cache with new keys or values at the positions from `first` on."""
    node.demand_size(past, 1, node.static(new, 1))
    node.demand_size(past, 3, node.static(new, 3))
    room = node.size(past, 2)
    missing = node.op("Sub", node.op("Max", room, _total(node)), room)
    return node.op("TensorScatter", _with_room(node, past, 2, missing), new, first, axis=2)


def _with_room(node: ContribNode, x: Expr, axis: int, count: Expr) -> Expr:
    """Return a value with zeros behind it; Pad would lose the other sizes, which are known."""
    sizes = [count if other == axis else node.size(x, other) for other in range(node.rank(x))]
    return node.concat([x, node.op("Expand", node.scalar(0, x), node.concat(sizes, 0))], axis)


def _refuse_other_forms(node: ContribNode) -> None:
    past = node.optional(3)
    has_past = past is not None and node.static(past, 2) != 0
    if has_past and (node.integer("sliding_window_cache") or not node.integer("causal")):
        raise NoDefinitionError("a cache that slides with its window, or a past that is not causal")
    if any(node.has(position) for position in (11, 12, 13, 14, 15)) or node.is_used(3):
        raise NoDefinitionError("sinks, a quantised cache, normalised heads, or the scores as a result")
    if node.integer("smooth_softmax") > 0:
        raise NoDefinitionError("a smooth softmax")


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


def _positions(node: ContribNode, query: Expr, steps: Expr, first: Expr | None) -> Expr:
    """Return the position of each new token, of shape [batch, step]."""
    given = node.optional(9)
    if given is not None:
        return given
    counted = position_range(node, steps)
    if first is not None:
        return node.op("Add", node.reshape(first, -1, 1), counted)
    return node.op("Expand", counted, node.concat([node.size(query, 0), steps], 0))


def _rotated(node: ContribNode, x: Expr, positions: Expr) -> Expr:
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
