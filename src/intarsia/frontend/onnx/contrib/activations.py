"""The Gelu family: activations with the addition of a bias in front of them."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.definition import ContribNode, Results, definition


@definition("Gelu", inputs=(1, 1))
def gelu(node: ContribNode) -> Results:
    """X * Phi(x)."""
    return [node.op("Gelu", node.input(0))]


@definition("BiasGelu", inputs=(2, 2))
def bias_gelu(node: ContribNode) -> Results:
    """Gelu of x + bias."""
    return [node.op("Gelu", node.op("Add", node.input(0), node.input(1)))]


@definition("FastGelu", inputs=(1, 2))
def fast_gelu(node: ContribNode) -> Results:
    """Gelu of x + bias, with Phi approximated by tanh."""
    x, bias = node.input(0), node.optional(1)
    biased = x if bias is None else node.op("Add", x, bias)
    return [node.op("Gelu", biased, approximate="tanh")]


@definition("QuickGelu", inputs=(1, 1), alpha=1.702)
def quick_gelu(node: ContribNode) -> Results:
    """X * sigmoid(alpha * x)."""
    x = node.input(0)
    return [node.op("Mul", x, node.op("Sigmoid", node.op("Mul", x, node.scalar(node.number("alpha"), x))))]
