"""The number of products that an operator sums into one element of its output."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx import NodeProto

Shape = tuple[int, ...]
CONTRACTIONS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def attribute(node: NodeProto, name: str, default: Any) -> Any:
    """The value of an attribute, or `default` where the node does not set it."""
    from onnx.helper import get_attribute_value

    return next((get_attribute_value(a) for a in node.attribute if a.name == name), default)


def fan_in(node: NodeProto, data: Shape, weight: Shape, output: Shape) -> float:
    """Products summed per output element of a contraction, averaged over the output.

    Zero padding adds no product, so convolutions of small images have less than `channels * kernel area`.

    Args:
        node: A node with an operator in `CONTRACTIONS`; convolutions have explicit pads (no `auto_pad`).
        data: Shape of the node's first input.
        weight: Shape of its second input.
        output: Shape of its output.
    """
    match node.op_type:
        case "Conv":
            return weight[1] * _window_products(node, weight[2:], output[2:], data[2:]) / prod(output[2:])
        case "ConvTranspose":
            channels: int = weight[0] // attribute(node, "group", 1)
            return channels * _window_products(node, weight[2:], data[2:], output[2:]) / prod(output[2:])
        case "Gemm":
            return data[0] if attribute(node, "transA", 0) else data[1]
        case _:
            return data[-1]


def _window_products(node: NodeProto, kernel: Shape, windows: Shape, image: Shape) -> int:
    """Pairs of a window position and a kernel tap that fall on the image and not on its padding."""
    rank = len(kernel)
    strides = attribute(node, "strides", [1] * rank)
    dilations = attribute(node, "dilations", [1] * rank)
    pads = attribute(node, "pads", [0] * (2 * rank))
    products = 1
    for axis in range(rank):
        starts = np.arange(windows[axis])[:, None] * strides[axis] - pads[axis]
        taps = starts + np.arange(kernel[axis]) * dilations[axis]
        products *= int(np.count_nonzero((taps >= 0) & (taps < image[axis])))
    return products
