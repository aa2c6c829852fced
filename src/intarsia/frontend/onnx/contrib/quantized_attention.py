"""The operator QAttention: attention with a quantised input projection."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.attention import SELF_ATTENTION, self_attention
from intarsia.frontend.onnx.contrib.definition import ContribNode, Results, definition
from intarsia.frontend.onnx.contrib.quantized_values import integer_product, scaled_to_float


@definition("QAttention", inputs=(5, 9), **SELF_ATTENTION)
def q_attention(node: ContribNode) -> Results:
    """Attention after a projection by integers."""
    product = integer_product(node, node.input(0), node.optional(6), node.input(1), node.optional(7))
    projected = scaled_to_float(node, product, node.input(3), node.input(4))
    bias = node.optional(2)
    if bias is not None:
        projected = node.op("Add", projected, bias)
    return self_attention(node, projected, None, node.optional(5), node.optional(8), None)
