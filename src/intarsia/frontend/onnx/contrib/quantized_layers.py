"""Quantised convolution and pooling, and quantisation itself."""

from __future__ import annotations

from intarsia.frontend.onnx.contrib.contrib_node import dtype_of, shape_of
from intarsia.frontend.onnx.contrib.convolutions import WINDOW, window_attributes
from intarsia.frontend.onnx.contrib.definition import (
    REQUIRED,
    ContribNode,
    NoDefinitionError,
    Results,
    definition,
)
from intarsia.frontend.onnx.contrib.quantized_elementwise import quantized_input, quantized_result
from intarsia.frontend.onnx.contrib.quantized_values import as_scalar, dequantized, quantized
from intarsia.ir import DType, Expr

_POOLING = {name: default for name, default in WINDOW.items() if name not in ("dilations", "kernel_shape")}


@definition("QLinearConv", inputs=(8, 9), group=1, channels_last=0, **WINDOW)
def q_linear_conv(node: ContribNode) -> Results:
    """QLinearConv, in NCHW or with channels last."""
    x = _channels_first(node, node.input(0))
    parameters = [as_scalar(node, node.optional(position)) for position in range(1, 9)]
    parameters[2] = node.input(3)  # the weights
    result = node.op("QLinearConv", x, *parameters, **window_attributes(node, "group"))
    return [_channels_as_given(node, result)]


@definition(
    "QLinearAveragePool",
    inputs=(4, 5),
    ceil_mode=0,
    channels_last=0,
    count_include_pad=0,
    kernel_shape=REQUIRED,
    **_POOLING,
)
def q_linear_average_pool(node: ContribNode) -> Results:
    """The quantised average of windows.

    Raises:
        NoDefinitionError: Padding counts, and the last window may overhang it: there onnxruntime divides by
            the size of the whole window, ONNX by what of it lies within the padding.
    """
    if node.integer("ceil_mode") and node.integer("count_include_pad"):
        raise NoDefinitionError("windows that overhang padding which counts")
    x = _channels_first(node, quantized_input(node, 0))
    pooled = node.op("AveragePool", x, **window_attributes(node, "ceil_mode", "count_include_pad"))
    return [quantized_result(node, _channels_as_given(node, pooled), 3, node.input(0))]


@definition("QLinearGlobalAveragePool", inputs=(5, 5), channels_last=0)
def q_linear_global_average_pool(node: ContribNode) -> Results:
    """The quantised average of each channel."""
    pooled = node.op("GlobalAveragePool", _channels_first(node, quantized_input(node, 0)))
    return [quantized_result(node, _channels_as_given(node, pooled), 3, node.input(0))]


def _channels_first(node: ContribNode, x: Expr) -> Expr:
    if not node.integer("channels_last"):
        return x
    rank = node.rank(x)
    return node.transpose(x, 0, rank - 1, *range(1, rank - 1))


def _channels_as_given(node: ContribNode, y: Expr) -> Expr:
    if not node.integer("channels_last"):
        return y
    return node.transpose(y, 0, *range(2, node.rank(y)), 1)


@definition("QuantizeLinear", inputs=(2, 3), axis=1)
def quantize_linear(node: ContribNode) -> Results:
    """QuantizeLinear, per axis where the scale has several elements."""
    scale = node.input(1)
    zero_point = node.optional(2)
    dtype = DType.UINT8 if zero_point is None else dtype_of(zero_point)
    return [quantized(node, node.input(0), scale, zero_point, dtype, _axis(node, scale))]


@definition("DequantizeLinear", inputs=(2, 3), axis=1)
def dequantize_linear(node: ContribNode) -> Results:
    """DequantizeLinear, per axis where the scale has several elements."""
    scale = node.input(1)
    return [dequantized(node, node.input(0), scale, node.optional(2), _axis(node, scale))]


def _axis(node: ContribNode, scale: Expr) -> int | None:
    return None if shape_of(scale) in ((), (1,)) else node.integer("axis")
