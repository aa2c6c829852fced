"""Matrix products of integers, with what makes them numbers again."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.contrib_node import dtype_of
from intarsia.frontend.onnx.contrib.definition import ContribNode, Results, definition
from intarsia.frontend.onnx.contrib.quantized_values import integer_product, quantized, scaled_to_float
from intarsia.ir import DType, Expr


@definition("DynamicQuantizeMatMul", inputs=(3, 5))
def dynamic_quantize_mat_mul(node: ContribNode) -> Results:
    """A product with quantised weights, for which the other operand is quantised as it comes."""
    a, a_scale, a_zero = node.ops("DynamicQuantizeLinear", 3, node.input(0))
    product = integer_product(node, a, a_zero, node.input(1), node.optional(3))
    return [_with_bias(node, scaled_to_float(node, product, a_scale, node.input(2)), node.optional(4))]


@definition("MatMulIntegerToFloat", inputs=(4, 7))
def mat_mul_integer_to_float(node: ContribNode) -> Results:
    """A product of quantised operands as a number, with a bias."""
    product = integer_product(node, node.input(0), node.optional(4), node.input(1), node.optional(5))
    result = scaled_to_float(node, product, node.input(2), node.input(3))
    return [_with_bias(node, result, node.optional(6))]


def _with_bias(node: ContribNode, y: Expr, bias: Expr | None) -> Expr:
    return y if bias is None else node.op("Add", y, bias)


@definition("MatMulInteger16", inputs=(2, 2))
def mat_mul_integer_16(node: ContribNode) -> Results:
    """A product of 16-bit integers, summed in 32 bits."""
    a, b = (node.cast(node.input(position), DType.INT32) for position in (0, 1))
    return [node.op("MatMul", a, b)]


@definition("QGemm", inputs=(6, 9), alpha=1.0, transA=0, transB=0)
def q_gemm(node: ContribNode) -> Results:
    """Alpha * A' B' + C of quantised operands, quantised again where a scale says how."""
    a, b = node.input(0), node.input(3)
    a = node.swapped(a) if node.integer("transA") else a
    b = node.swapped(b) if node.integer("transB") else b
    product = integer_product(node, a, node.input(2), b, node.input(5))
    added = node.optional(6)
    if added is not None:
        product = node.op("Add", product, added)
    result = scaled_to_float(node, product, node.input(1), node.input(4))
    alpha = node.number("alpha")
    if alpha != 1.0:
        result = node.op("Mul", result, node.scalar(alpha, result))
    scale, zero_point = node.optional(7), node.optional(8)
    if scale is None:
        return [result]
    dtype = dtype_of(node.input(0)) if zero_point is None else dtype_of(zero_point)
    return [quantized(node, result, scale, zero_point, dtype)]
