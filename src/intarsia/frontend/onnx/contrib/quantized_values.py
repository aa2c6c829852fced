"""Quantisation and dequantisation with the parameters of contributed operators."""

from __future__ import annotations

import numpy as np

from intarsia.frontend.onnx.contrib.contrib_node import ContribNode, array_of, dtype_of, shape_of
from intarsia.ir import DType, Expr


def as_scalar(node: ContribNode, parameter: Expr | None) -> Expr | None:
    """A scale or zero point of one element as a scalar; those of several elements as they are."""
    if parameter is None or shape_of(parameter) != (1,):
        return parameter
    value = array_of(parameter)
    return node.reshape(parameter) if value is None else node.constant(np.array(value).reshape(()))


def dequantized(
    node: ContribNode, x: Expr, scale: Expr, zero_point: Expr | None, axis: int | None = None
) -> Expr:
    """(x - zero point) * scale, per tensor or along an axis."""
    scale, zero_point = _parameters(node, scale, zero_point)
    attrs = {} if axis is None else {"axis": axis}
    return node.op("DequantizeLinear", x, scale, zero_point, **attrs)


def quantized(
    node: ContribNode,
    y: Expr,
    scale: Expr,
    zero_point: Expr | None,
    dtype: DType = DType.UINT8,
    axis: int | None = None,
) -> Expr:
    """Y / scale + zero point, rounded and saturated; of an element type where there is no zero point."""
    scale, zero_point = _parameters(node, scale, zero_point)
    if zero_point is None:
        zero_point = node.constant(np.zeros((), dtype.numpy))
    attrs = {} if axis is None else {"axis": axis}
    return node.op("QuantizeLinear", y, scale, zero_point, **attrs)


def _parameters(node: ContribNode, scale: Expr, zero_point: Expr | None) -> tuple[Expr, Expr | None]:
    plain = as_scalar(node, scale)
    assert plain is not None
    return plain, as_scalar(node, zero_point)


def integer_product(node: ContribNode, a: Expr, a_zero: Expr | None, b: Expr, b_zero: Expr | None) -> Expr:
    """The matrix product of integers minus their zero points, as int32."""
    return node.op("MatMulInteger", a, b, as_scalar(node, a_zero), as_scalar(node, b_zero))


def scaled_to_float(node: ContribNode, product: Expr, a_scale: Expr, b_scale: Expr) -> Expr:
    """An integer product times both scales, in the element type of the scales."""
    scales = [as_scalar(node, scale) for scale in (a_scale, b_scale)]
    return node.op("Mul", node.cast(product, dtype_of(a_scale)), node.op("Mul", *scales))
