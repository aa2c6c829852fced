"""Shared parts of the attention operators: heads, masks, and softmax(q k' * scale + bias) v."""

from __future__ import annotations

import math

import numpy as np

from intarsia.frontend.onnx.contrib.contrib_node import dtype_of, shape_of
from intarsia.frontend.onnx.contrib.definition import ContribNode, NoDefinitionError
from intarsia.ir import ANY, DType, Expr
from intarsia.support.errors import InvalidModelError


def split_heads(node: ContribNode, x: Expr, heads: int) -> Expr:
    """[batch, step, heads * size] as [batch, head, step, size]."""
    width = node.static(x, 2)
    if heads < 1 or (width or 0) % heads:
        raise InvalidModelError(
            f"operator {node.name!r} has a width of {width}, which makes no {heads} heads"
        )
    size = -1 if width is None else width // heads
    return node.transpose(node.reshape(x, 0, 0, heads, size), 0, 2, 1, 3)


def merge_heads(node: ContribNode, x: Expr) -> Expr:
    """[batch, head, step, size] as [batch, step, heads * size]."""
    heads, size = node.static(x, 1), node.static(x, 3)
    width = heads * size if heads is not None and size is not None else -1
    return node.reshape(node.transpose(x, 0, 2, 1, 3), 0, 0, width)


def with_past(node: ContribNode, x: Expr, past: Expr | None) -> Expr:
    """Concatenate keys or values to those of the past."""
    return x if past is None else node.op("Concat", past, x, axis=2)


def attend(
    node: ContribNode,
    query: Expr,
    key: Expr,
    value: Expr,
    scale: float | None,
    biases: tuple[Expr | None, ...],
    softcap: float = 0.0,
) -> Expr:
    """Attention of heads: softmax of the scaled scores and their biases, times the values.

    Args:
        node: The node.
        query: Queries, shape [batch, head, step, size].
        key: Keys, shape [batch, head, total, size].
        value: Values, shape [batch, head, total, value size].
        scale: Factor of the scores; None or 0 for the inverse square root of the size.
        biases: Addends of the scores; None stands for 0.
        softcap: Bound of the scores by tanh; 0 for none.
    """
    size = node.static(query, 3)
    if not scale and size is None:
        raise NoDefinitionError("the size of a head is not known")
    factor = scale or 1.0 / math.sqrt(size or 1)
    scores = node.op("MatMul", query, node.transpose(key, 0, 1, 3, 2))
    scores = node.op("Mul", scores, node.scalar(factor, scores))
    if softcap:
        cap = node.scalar(softcap, scores)
        scores = node.op("Mul", node.op("Tanh", node.op("Div", scores, cap)), cap)
    for bias in biases:
        if bias is not None:
            scores = node.op("Add", scores, bias)
    return node.op("MatMul", node.op("Softmax", scores, axis=-1), value)


def padding_bias(node: ContribNode, mask: Expr, filter_value: float, like: Expr, total: Expr) -> Expr:
    """Return the addend of the scores for a mask: a large negative value where it is not positive.

    Args:
        node: The node.
        mask: A padding mask. Shape [batch]: lengths; [2 * batch]: ends, then beginnings; [batch, total] or
            [batch, step, total]: positive where a key counts.
        filter_value: The large negative value.
        like: A value of the element type of the scores.
        total: The number of keys, an int64 tensor of shape (1,).
    """
    rank = node.rank(mask)
    if rank == 1:
        counts = _within_lengths(node, mask, like, total)
    elif rank in (2, 3):
        counts = node.op("Greater", mask, node.scalar(0, mask))
        counts = node.op("Unsqueeze", counts, node.ints(1, 2) if rank == 2 else node.ints(1))
    else:
        raise NoDefinitionError(f"a mask of {rank} dimensions")
    return node.op("Where", counts, node.scalar(0, like), node.scalar(filter_value, like))


def _within_lengths(node: ContribNode, lengths: Expr, like: Expr, total: Expr) -> Expr:
    """Whether keys lie before the end, and not before the beginning, of their batch element."""
    batch, count = node.static(like, 0), node.static(lengths, 0)
    is_one_each, is_two_each = has_same_axis(like, lengths), batch is not None and count == 2 * batch
    if not is_one_each and not is_two_each:
        raise NoDefinitionError("lengths that are not known to number as many as the batch, or twice as many")
    positions = position_range(node, total)
    lengths = node.cast(lengths, DType.INT64)
    ends, begins = lengths, None
    if is_two_each:
        assert batch is not None
        ends, begins = node.split(lengths, 0, (batch, batch))
    # Not a Reshape: behind one the number of texts would no longer be known to be that of the batch.
    inside = node.op("Less", positions, node.op("Unsqueeze", ends, node.ints(1, 2, 3)))
    if begins is None:
        return inside
    later = node.op("GreaterOrEqual", positions, node.op("Unsqueeze", begins, node.ints(1, 2, 3)))
    return node.op("And", inside, later)


def has_same_axis(x: Expr, y: Expr) -> bool:
    """Whether the first axes of two tensors are known to be equal, as numbers or as symbols."""
    first, second = ((shape_of(value) or (ANY,))[0] for value in (x, y))
    return bool(first == second and first != ANY)


def causal_bias(
    node: ContribNode, steps: Expr, past: Expr, total: Expr, like: Expr, padding: Expr | None = None
) -> Expr:
    """Return the addend of the scores that masks later keys.

    For later keys the lowest finite number replaces the addend of the padding mask, as in onnxruntime. Their
    sum could be -inf; then a step with only padding before it would attend to the padding alone.

    Args:
        node: The node.
        steps: The number of queries, an int64 tensor of shape (1,).
        past: The number of keys before the first query, likewise.
        total: The number of keys, likewise.
        like: A value of the element type of the scores.
        padding: Addend of a padding mask; None for none.
    """
    kept = node.scalar(0, like) if padding is None else padding
    return node.op("Where", visible_keys(node, steps, past, total), kept, node.scalar(lowest_of(like), like))


def lowest_of(like: Expr) -> float:
    """Return the lowest finite number of an element type: that of a value that is masked."""
    return float(np.finfo(np.float16).min if dtype_of(like) is DType.FLOAT16 else np.finfo(np.float32).min)


def visible_keys(node: ContribNode, steps: Expr, past: Expr, total: Expr) -> Expr:
    """Whether a key is no later than a step, of shape [step, total]; arguments as of `causal_bias`."""
    rows = node.op("Add", node.reshape(position_range(node, steps), -1, 1), past)
    return node.op("GreaterOrEqual", rows, position_range(node, total))


def position_range(node: ContribNode, count: Expr) -> Expr:
    """0, 1, ... as int64, count (a tensor of shape (1,)) of them."""
    zero, one = node.constant(np.array(0, np.int64)), node.constant(np.array(1, np.int64))
    return node.op("Range", zero, node.reshape(count), one)
