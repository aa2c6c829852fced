"""A detector with random weights: a backbone, a head at three scales, and a tail with NonMaxSuppression.

It is written as exporters write YOLO: SiLU as Sigmoid and Mul, upsampling by Resize, scales joined by Reshape
and Concat, and boxes from centres and sizes. Height and width are multiples of 32.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

CLASSES: Final = 20
_BOX: Final = 4
_OPSET: Final = 17
_CHANNELS: Final = (16, 32, 64, 128, 256)
"""Channels of the backbone, by the number of times that the image was halved."""


class _Graph:
    """Nodes and weights so far."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, array: object, dtype: type[np.generic]) -> str:
        """Add a constant, and return its name."""
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def node(self, operator: str, inputs: list[str], outputs: int = 1, **attributes: object) -> list[str]:
        """Add a node, and return the names of its results."""
        names = [f"{operator.lower()}{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def convolution(self, x: str, channels: tuple[int, int], taps: int, stride: int = 1) -> str:
        """Add a convolution with a bias, and return the name of its result."""
        before, after = channels
        scale = (before * taps * taps) ** -0.5
        weight = self.constant(self._rng.standard_normal((after, before, taps, taps)) * scale, np.float32)
        bias = self.constant(self._rng.standard_normal(after) * 0.1, np.float32)
        pads = (taps // 2,) * 4
        (result,) = self.node("Conv", [x, weight, bias], strides=(stride, stride), pads=pads)
        return result

    def layer(self, x: str, channels: tuple[int, int], taps: int, stride: int = 1) -> str:
        """Add a convolution with SiLU, and return the name of its result."""
        result = self.convolution(x, channels, taps, stride)
        (gate,) = self.node("Sigmoid", [result])
        return self.node("Mul", [result, gate])[0]

    def residual(self, x: str, channels: int) -> str:
        """Add a block of two layers beside a shortcut, and return the name of its result."""
        inner = self.layer(self.layer(x, (channels, channels // 2), 1), (channels // 2, channels), 3)
        return self.node("Add", [x, inner])[0]


def network() -> onnx.ModelProto:
    """Return the backbone and the head: an image to a map (images, 4 + classes, h, w) for each scale."""
    graph, x, levels = _Graph(), "image", []
    before = 3
    for channels in _CHANNELS:
        x = graph.residual(graph.layer(x, (before, channels), 3, 2), channels)
        before = channels
        levels.append((x, channels))
    x, channels = levels[-1]
    maps = [(x, channels)]
    for other, count in reversed(levels[2:-1]):
        x = graph.layer(x, (channels, count), 1)
        scales = graph.constant([1, 1, 2, 2], np.float32)
        modes: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        (wide,) = graph.node("Resize", [x, "", scales], mode="nearest", **modes)
        (joined,) = graph.node("Concat", [wide, other], axis=1)
        x, channels = graph.layer(joined, (2 * count, count), 3), count
        maps.append((x, channels))
    outputs = [graph.convolution(x, (channels, _BOX + CLASSES), 1) for x, channels in maps]
    results = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, _BOX + CLASSES, None, None])
        for name in outputs
    ]
    image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, "height", "width"])
    return _model(graph, [image], results)


def tail(maps: list[str]) -> onnx.ModelProto:
    """Return the tail: maps of all scales to boxes, scores, and the selected ones.

    Args:
        maps: Names of the maps.
    """
    graph, flat = _Graph(), []
    for name in maps:
        shape = graph.constant([0, _BOX + CLASSES, -1], np.int64)
        flat += graph.node("Reshape", [name, shape])
    (joined,) = graph.node("Concat", flat, axis=2)
    sizes = graph.constant([2, 2, CLASSES], np.int64)
    centre, size, logits = graph.node("Split", [joined, sizes], 3, axis=1)
    (scores,) = graph.node("Sigmoid", [logits])
    (extent,) = graph.node("Mul", [graph.node("Exp", [size])[0], graph.constant(0.5, np.float32)])
    corners = [graph.node("Sub", [centre, extent])[0], graph.node("Add", [centre, extent])[0]]
    (boxes,) = graph.node("Transpose", graph.node("Concat", corners, axis=1), perm=(0, 2, 1))
    limits = [graph.constant(100, np.int64), graph.constant(0.5, np.float32), graph.constant(0.7, np.float32)]
    (chosen,) = graph.node("NonMaxSuppression", [boxes, scores, *limits])
    params = [
        helper.make_tensor_value_info(
            name, onnx.TensorProto.FLOAT, [1, _BOX + CLASSES, f"height{number}", f"width{number}"]
        )
        for number, name in enumerate(maps)
    ]
    results = [
        helper.make_tensor_value_info(boxes, onnx.TensorProto.FLOAT, [1, None, _BOX]),
        helper.make_tensor_value_info(scores, onnx.TensorProto.FLOAT, [1, CLASSES, None]),
        helper.make_tensor_value_info(chosen, onnx.TensorProto.INT64, [None, 3]),
    ]
    return _model(graph, params, results)


def detector() -> tuple[onnx.ModelProto, onnx.ModelProto, onnx.ModelProto]:
    """Return the network, its tail, and both as one model."""
    first = network()
    names = [item.name for item in first.graph.output]
    second = tail(names)
    renamed = onnx.compose.add_prefix(second, "tail_", rename_inputs=False, rename_outputs=False)
    whole = onnx.compose.merge_models(first, renamed, [(name, name) for name in names])
    return first, second, whole


def _model(
    graph: _Graph, params: list[onnx.ValueInfoProto], results: list[onnx.ValueInfoProto]
) -> onnx.ModelProto:
    made = helper.make_graph(graph.nodes, "detector", params, results, graph.weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
