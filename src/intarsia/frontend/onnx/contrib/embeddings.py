"""Sums of embeddings with a layer normalisation, as BERT begins."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.contrib_node import dtype_of
from intarsia.frontend.onnx.contrib.definition import ContribNode, Results, definition
from intarsia.frontend.onnx.contrib.quantized_values import dequantized
from intarsia.ir import DType, Expr


@definition("EmbedLayerNormalization", inputs=(7, 9), epsilon=1e-12, mask_index_type=None)
def embed_layer_normalization(node: ContribNode) -> Results:
    """The normalised sum of the embeddings of words, positions and segments; the words that a mask counts."""
    total = _sum_of_embeddings(node, node.input(2), node.input(3), node.optional(4), node.optional(8))
    normalized = node.op(
        "LayerNormalization", total, node.input(5), node.input(6), epsilon=node.number("epsilon")
    )
    return [normalized, _mask_index(node, node.optional(7)), total][: len(node.outputs)]


@definition("QEmbedLayerNormalization", inputs=(18, 18), epsilon=1e-12)
def quantized_embed_layer_normalization(node: ContribNode) -> Results:
    """EmbedLayerNormalization of quantised tables."""
    word, position, segment, gamma, beta = (
        dequantized(node, node.input(table), node.input(table + 6), node.optional(table + 11))
        if node.has(table)
        else None
        for table in range(2, 7)
    )
    assert word is not None
    assert position is not None
    total = _sum_of_embeddings(node, word, position, segment, None)
    normalized = node.op("LayerNormalization", total, gamma, beta, epsilon=node.number("epsilon"))
    return [normalized, _mask_index(node, node.optional(7))][: len(node.outputs)]


def _sum_of_embeddings(
    node: ContribNode, word: Expr, position: Expr, segment: Expr | None, positions: Expr | None
) -> Expr:
    ids = node.input(0)
    if positions is None:
        at_positions = node.slice(position, 0, node.ints(0), node.size(ids, 1))
    else:
        at_positions = node.op("Gather", position, positions)
    total = node.op("Add", node.op("Gather", word, ids), at_positions)
    if segment is None or not node.has(1):
        return total
    return node.op("Add", total, node.op("Gather", segment, node.input(1)))


def _mask_index(node: ContribNode, mask: Expr | None) -> Expr:
    """The number of words per batch element that the mask marks with 1; zeros without a mask."""
    ids = node.input(0)
    if mask is None:
        zero = node.constant(DType.INT32.numpy.type(0).reshape(1))
        return node.op("Expand", zero, node.size(ids, 0))
    unit = node.scalar(1, mask)
    marked = node.cast(node.op("Equal", mask, unit), DType.INT32)
    assert dtype_of(marked) is DType.INT32
    return node.op("ReduceSum", marked, node.ints(1), keepdims=0)
