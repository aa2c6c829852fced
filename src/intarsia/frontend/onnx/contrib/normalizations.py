"""Layer normalisation: of opsets that lacked it, by the root mean square, and with a skip connection."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.contrib_node import dtype_of
from intarsia.frontend.onnx.contrib.definition import ContribNode, NoDefinitionError, Results, definition
from intarsia.ir import DType, Expr


@definition("LayerNormalization", inputs=(2, 3), axis=-1, epsilon=1e-5, stash_type=1)
def layer_normalization(node: ContribNode) -> Results:
    """LayerNormalization as onnxruntime had it before ONNX did, from opset 17 on."""
    attrs = {
        "axis": node.integer("axis"),
        "epsilon": node.number("epsilon"),
        "stash_type": node.integer("stash_type"),
    }
    args = (node.input(0), node.input(1), node.optional(2))
    if len(node.outputs) == 1:
        return [node.op("LayerNormalization", *args, **attrs)]
    return node.ops("LayerNormalization", len(node.outputs), *args, **attrs)


@definition("SimplifiedLayerNormalization", inputs=(2, 2), axis=-1, epsilon=1e-5, stash_type=1)
def simplified_layer_normalization(node: ContribNode) -> Results:
    """RMSNormalization, and the inverse of the root mean square."""
    x, scale = node.input(0), node.input(1)
    axis, stash = node.integer("axis"), node.integer("stash_type")
    normalized = _by_root_mean_square(node, x, scale, axis, stash)
    return [normalized, _inverse_root_mean_square(node, x, axis)] if node.is_used(1) else [normalized]


def _by_root_mean_square(node: ContribNode, x: Expr, scale: Expr, axis: int = -1, stash: int = 1) -> Expr:
    """The normalised value in the element type of its scale, as onnxruntime has it."""
    x = node.cast(x, dtype_of(scale))
    return node.op("RMSNormalization", x, scale, axis=axis, epsilon=node.number("epsilon"), stash_type=stash)


def _inverse_root_mean_square(node: ContribNode, x: Expr, axis: int) -> Expr:
    """1 / sqrt(mean(x^2) + epsilon) over the axes from one on, which stay with size 1; float32."""
    x, rank = node.cast(x, DType.FLOAT32), node.rank(x)
    axes = node.ints(*range(axis % rank, rank))
    mean = node.op("ReduceMean", node.op("Mul", x, x), axes, keepdims=1)
    return node.op(
        "Reciprocal", node.op("Sqrt", node.op("Add", mean, node.scalar(node.number("epsilon"), x)))
    )


@definition("SkipLayerNormalization", inputs=(3, 5), epsilon=1e-12)
def skip_layer_normalization(node: ContribNode) -> Results:
    """LayerNormalization of x + skip + bias."""
    total = _sum_with_skip(node, node.optional(4))
    normalized = node.op(
        "LayerNormalization", total, node.input(2), node.optional(3), epsilon=node.number("epsilon")
    )
    return _with_sum(node, normalized, total)


@definition("SkipSimplifiedLayerNormalization", inputs=(3, 4), epsilon=1e-12)
def skip_simplified_layer_normalization(node: ContribNode) -> Results:
    """RMSNormalization of x + skip + bias."""
    total = _sum_with_skip(node, node.optional(3))
    return _with_sum(node, _by_root_mean_square(node, total, node.input(2)), total)


def _sum_with_skip(node: ContribNode, bias: Expr | None) -> Expr:
    total = node.op("Add", node.input(0), node.input(1))
    return total if bias is None else node.op("Add", total, bias)


def _with_sum(node: ContribNode, normalized: Expr, total: Expr) -> Results:
    """The outputs: result, two statistics for training, and the sum that was normalised."""
    if node.is_used(1) or node.is_used(2):
        raise NoDefinitionError("the mean or the inverse standard deviation is used")
    return [normalized, normalized, normalized, total][: len(node.outputs)]
