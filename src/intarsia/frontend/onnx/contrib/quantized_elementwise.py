"""QLinear operators that work element by element, or move elements: dequantise, compute, quantise."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.contrib_node import dtype_of
from intarsia.frontend.onnx.contrib.definition import REQUIRED, ContribNode, Results, definition
from intarsia.frontend.onnx.contrib.quantized_values import dequantized, quantized
from intarsia.ir import Expr
from intarsia.support.errors import InvalidModelError

_MANY = 1 << 20
_SOFTMAX_OF_ONE_AXIS = 13
"""The opset since which Softmax is over one axis instead of all axes from one on."""


def quantized_input(node: ContribNode, position: int) -> Expr:
    """The value of a quantised input, which its scale and zero point follow."""
    return dequantized(node, node.input(position), node.input(position + 1), node.optional(position + 2))


def quantized_result(node: ContribNode, y: Expr, position: int, like: Expr) -> Expr:
    """A result, quantised by the scale and zero point at a position, in the element type of an input."""
    return quantized(node, y, node.input(position), node.optional(position + 1), dtype_of(like))


def _binary(node: ContribNode, name: str) -> Results:
    result = node.op(name, quantized_input(node, 0), quantized_input(node, 3))
    return [quantized_result(node, result, 6, node.input(0))]


@definition("QLinearAdd", inputs=(7, 8))
def q_linear_add(node: ContribNode) -> Results:
    """The quantised sum."""
    return _binary(node, "Add")


@definition("QLinearMul", inputs=(7, 8))
def q_linear_mul(node: ContribNode) -> Results:
    """The quantised product."""
    return _binary(node, "Mul")


@definition("QLinearSigmoid", inputs=(4, 5))
def q_linear_sigmoid(node: ContribNode) -> Results:
    """The quantised logistic function."""
    return [quantized_result(node, node.op("Sigmoid", quantized_input(node, 0)), 3, node.input(0))]


@definition("QLinearLeakyRelu", inputs=(4, 5), alpha=0.01)
def q_linear_leaky_relu(node: ContribNode) -> Results:
    """The quantised LeakyRelu."""
    result = node.op("LeakyRelu", quantized_input(node, 0), alpha=node.number("alpha"))
    return [quantized_result(node, result, 3, node.input(0))]


@definition("QLinearSoftmax", inputs=(5, 5), axis=-1, opset=REQUIRED)
def q_linear_softmax(node: ContribNode) -> Results:
    """The quantised Softmax of the opset that an attribute names."""
    x, axis = quantized_input(node, 0), node.integer("axis")
    if node.integer("opset") >= _SOFTMAX_OF_ONE_AXIS:
        return [quantized_result(node, node.op("Softmax", x, axis=axis), 3, node.input(0))]
    flat = node.op("Softmax", node.op("Flatten", x, axis=axis), axis=-1)
    result = node.op("Reshape", flat, node.op("Shape", x))
    return [quantized_result(node, result, 3, node.input(0))]


@definition("QLinearWhere", inputs=(9, 9))
def q_linear_where(node: ContribNode) -> Results:
    """Select one of two quantised values, element by element."""
    result = node.op("Where", node.input(0), quantized_input(node, 1), quantized_input(node, 4))
    return [quantized_result(node, result, 7, node.input(1))]


@definition("QLinearConcat", inputs=(5, _MANY), axis=REQUIRED)
def q_linear_concat(node: ContribNode) -> Results:
    """Quantised values one behind the other."""
    if len(node.args) % 3 != 2:  # two parameters of the result, then three inputs for each value
        raise InvalidModelError(
            f"operator 'QLinearConcat' has {len(node.args)} inputs, expected 2 and 3 for each value"
        )
    parts = [quantized_input(node, position) for position in range(2, len(node.args), 3)]
    joined = node.concat(parts, node.integer("axis"))
    return [quantized_result(node, joined, 0, node.input(2))]
