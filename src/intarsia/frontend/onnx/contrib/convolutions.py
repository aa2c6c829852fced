"""Convolutions with what follows them, and pooling and sampling beside ONNX's own."""

from __future__ import annotations

from typing import Any

from intarsia.frontend.onnx.contrib.activation import apply_activation
from intarsia.frontend.onnx.contrib.contrib_node import array_of
from intarsia.frontend.onnx.contrib.definition import ContribNode, NoDefinitionError, Results, definition
from intarsia.ir import AttrValue

WINDOW: dict[str, Any] = {
    "auto_pad": "NOTSET",
    "dilations": None,
    "kernel_shape": None,
    "pads": None,
    "strides": None,
}
"""Attributes of windows, with their defaults."""


def window_attributes(node: ContribNode, *names: str) -> dict[str, AttrValue]:
    """The attributes of a node's window, and others by name, but for those that are absent."""
    wanted = (*(name for name in WINDOW if name in node.attributes), *names)
    return {name: node.attributes[name] for name in wanted if node.attributes[name] is not None}


@definition("FusedConv", inputs=(2, 4), activation="", activation_params=(), group=1, **WINDOW)
def fused_conv(node: ContribNode) -> Results:
    """An activation of a convolution to which another value is added."""
    attrs = window_attributes(node, "group")
    result = node.op("Conv", node.input(0), node.input(1), node.optional(2), **attrs)
    added = node.optional(3)
    if added is not None:
        result = node.op("Add", result, added)
    return [apply_activation(node, result, node.text("activation"), node.attributes["activation_params"])]


@definition("ConvTransposeWithDynamicPads", inputs=(2, 4), group=1, output_padding=None, **WINDOW)
def conv_transpose_with_dynamic_pads(node: ContribNode) -> Results:
    """ConvTranspose with pads that are an input, where their value is known."""
    given = node.optional(2)
    pads = None if given is None else array_of(given)
    if given is not None and pads is None:
        raise NoDefinitionError("the pads are computed when the model runs")
    attrs = window_attributes(node, "group", "output_padding")
    if pads is not None:
        attrs["pads"] = tuple(int(value) for value in pads.reshape(-1))
    return [node.op("ConvTranspose", node.input(0), node.input(1), node.optional(3), **attrs)]


@definition("NhwcMaxPool", inputs=(1, 1), ceil_mode=0, **WINDOW)
def nhwc_max_pool(node: ContribNode) -> Results:
    """MaxPool with the channels last."""
    x = node.input(0)
    rank = node.rank(x)
    first = node.transpose(x, 0, rank - 1, *range(1, rank - 1))
    pooled = node.op("MaxPool", first, **window_attributes(node, "ceil_mode"))
    return [node.transpose(pooled, 0, *range(2, rank), 1)]


@definition("GridSample", inputs=(2, 2), align_corners=0, mode="bilinear", padding_mode="zeros")
def grid_sample(node: ContribNode) -> Results:
    """GridSample with the names of modes that ONNX had before opset 20."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.text("mode"), node.text("mode"))
    attrs: dict[str, AttrValue] = {
        "align_corners": node.integer("align_corners"),
        "mode": mode,
        "padding_mode": node.text("padding_mode"),
    }
    return [node.op("GridSample", node.input(0), node.input(1), **attrs)]
