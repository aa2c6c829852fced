"""Random convolutional networks on images of any size."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper

_POINTWISE = ("Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Neg")
_CHANNELS = (1, 3, 8, 16, 20, 33)


@dataclass
class Network:
    """A network as it grows: values are names with channels, and the layers that made their size."""

    draw: st.DrawFn
    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    values: list[tuple[str, int, str]] = field(default_factory=list)

    def constant(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
        """Add a constant, and return its name."""
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int) -> str:
        """Add random weights, and return their name."""
        scale = max(1, int(np.prod(shape[1:]))) ** -0.5
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def node(self, op: str, inputs: list[str], **attributes: object) -> str:
        """Add a node, and return the name of its result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def add(self) -> None:
        """Add a random layer."""
        draw = self.draw
        name, channels, level = draw(st.sampled_from(self.values))
        kinds = [
            "conv",
            "conv",
            "depthwise",
            "pointwise",
            "pool",
            "join",
            "gate",
            "scale",
            "enlarge",
            "phases",
        ]
        match draw(st.sampled_from(kinds)):
            case "conv":
                self._convolution(name, channels, level, draw(st.sampled_from(_CHANNELS)), 1)
            case "depthwise":
                self._convolution(name, channels, level, channels, channels)
            case "pointwise":
                self.values.append((self.node(draw(st.sampled_from(_POINTWISE)), [name]), channels, level))
            case "pool":
                self._pool(name, channels, level)
            case "join":
                self._join(name, channels, level)
            case "gate":
                before = draw(st.sampled_from((name, self.node("GlobalAveragePool", [name]))))
                gate = self.node("Sigmoid", [before])  # of each pixel, or of each channel
                self.values.append((self.node("Mul", [name, gate]), channels, level))
            case "scale":
                other = self.weight(1, channels, 1, 1)
                self.values.append(
                    (self.node(draw(st.sampled_from(("Add", "Mul"))), [name, other]), channels, level)
                )
            case "enlarge":
                self._enlarge(name, channels, level)
            case "phases":
                self._transposed(name, channels, level)

    def _transposed(self, name: str, channels: int, level: str) -> None:
        """Add a transposed convolution, whose results overlap where taps are more than strides."""
        made = self.draw(st.sampled_from(_CHANNELS))
        taps, stride, pads, more = self.draw(
            st.sampled_from(
                (
                    (2, 2, 0, 0),
                    (4, 2, 1, 0),
                    (3, 2, 1, 1),
                    (4, 2, 0, 0),
                    (6, 2, 2, 0),
                    (3, 1, 1, 0),
                    (4, 1, 0, 0),
                    (9, 3, 4, 2),
                )
            )
        )
        dilation = self.draw(st.sampled_from([1, 2])) if stride == 1 else 1
        reach = (taps - 1) * dilation + 1
        pads += (reach - taps) // 2
        inputs = [name, self.weight(channels, made, taps, taps), self.weight(made)]
        result = self.node(
            "ConvTranspose",
            inputs,
            strides=[stride] * 2,
            pads=[pads] * 4,
            output_padding=[more] * 2,
            dilations=[dilation] * 2,
        )
        size = f"{level}*{stride}" if reach - 2 * pads + more == stride else result
        self.values.append((result, made, level if size == f"{level}*1" else size))

    def _convolution(self, name: str, channels: int, level: str, made: int, groups: int) -> None:
        draw = self.draw
        taps = draw(st.tuples(st.sampled_from((1, 2, 3, 5)), st.sampled_from((1, 3))))
        strides = draw(st.sampled_from(((1, 1), (1, 1), (2, 2), (2, 1), (3, 2))))
        dilations = draw(st.sampled_from(((1, 1), (1, 1), (2, 2))))
        reach = [(tap - 1) * dilation for tap, dilation in zip(taps, dilations, strict=True)]
        pads = [*(-(-item // 2) for item in reach), *(item // 2 for item in reach)]
        if draw(st.booleans()) and strides == (1, 1) and max(reach):
            pads = [draw(st.integers(0, item)) for item in (*reach, *reach)]
        inputs = [name, self.weight(made, channels // groups, *taps)]
        if draw(st.booleans()):
            inputs.append(self.weight(made))
        if draw(st.integers(0, 3)) == 0:
            mode = draw(st.sampled_from(("SAME_UPPER", "SAME_LOWER")))
            result = self.node(
                "Conv", inputs, strides=strides, dilations=dilations, auto_pad=mode, group=groups
            )
            self.values.append((result, made, level if strides == (1, 1) else f"{level}/{strides}"))
            return
        result = self.node("Conv", inputs, strides=strides, dilations=dilations, pads=pads, group=groups)
        after = (
            level
            if strides == (1, 1) and [a + b for a, b in zip(pads[:2], pads[2:], strict=True)] == reach
            else result
        )
        self.values.append((result, made, after))

    def _pool(self, name: str, channels: int, level: str) -> None:
        draw = self.draw
        kind, taps, stride = (
            draw(st.sampled_from(("MaxPool", "AveragePool"))),
            draw(st.sampled_from((2, 3))),
            draw(st.sampled_from((1, 2))),
        )
        pads = [draw(st.integers(0, taps - 1))] * 4  # onnx's reference mixes up different ones
        more = {"count_include_pad": 1} if kind == "AveragePool" else {}
        if kind == "MaxPool" and draw(st.integers(0, 3)) == 0:
            mode = draw(st.sampled_from(("SAME_UPPER", "SAME_LOWER")))
            result = self.node(kind, [name], kernel_shape=[taps] * 2, strides=[stride] * 2, auto_pad=mode)
            self.values.append((result, channels, level if stride == 1 else f"{level}/{(stride, stride)}"))
            return
        result = self.node(
            kind, [name], kernel_shape=[taps, taps], strides=[stride, stride], pads=pads, **more
        )
        self.values.append(
            (
                result,
                channels,
                level if stride == 1 and pads[0] + pads[2] == pads[1] + pads[3] == taps - 1 else result,
            )
        )

    def _join(self, name: str, channels: int, level: str) -> None:
        others = [item for item in self.values if item[2] == level and item[0] != name]
        if not others:
            return
        other, more, _ = self.draw(st.sampled_from(others))
        if more == channels and self.draw(st.booleans()):
            self.values.append(
                (self.node(self.draw(st.sampled_from(("Add", "Sub", "Max"))), [name, other]), channels, level)
            )
        else:
            joined = self.node("Concat", [name, other], axis=1)
            self.values.append((joined, channels + more, level))

    def _enlarge(self, name: str, channels: int, level: str) -> None:
        if self.draw(st.booleans()):
            self._fit(name, channels)
            return
        factors = self.draw(st.sampled_from(((2, 2), (2, 3), (1.5, 0.75), (1.25, 2.0))))
        scales = self.constant(np.array([1, 1, *factors], np.float32))
        modes = (
            {"mode": "linear"}
            if self.draw(st.booleans())
            else {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
        )
        self.values.append((self.node("Resize", [name, "", scales], **modes), channels, f"{level}*{factors}"))

    def _fit(self, name: str, channels: int) -> None:
        """Resize an image to the size of another value."""
        other, _, level = self.draw(st.sampled_from(self.values))
        first = self.node("Shape", [name], start=0, end=2)
        sizes = self.node("Concat", [first, self.node("Shape", [other], start=2)], axis=0)
        coordinates = self.draw(st.sampled_from(("half_pixel", "align_corners", "asymmetric")))
        result = self.node(
            "Resize", [name, "", "", sizes], mode="linear", coordinate_transformation_mode=coordinates
        )
        self.values.append((result, channels, level))

    def model(self, results: list[str]) -> onnx.ModelProto:
        """Return the network."""
        dims = ["n", self.values[0][1], "h", "w"]
        graph = helper.make_graph(
            self.nodes,
            "images",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, dims)],
            [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in results],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@st.composite
def networks(draw: st.DrawFn) -> onnx.ModelProto:
    """Draw a network: results are its last image, and perhaps a head behind a pool of it."""
    network = Network(draw, np.random.default_rng(draw(st.integers(0, 1000))))
    network.values.append(("x", draw(st.sampled_from((1, 3, 4, 7, 16))), "x"))
    for _ in range(draw(st.integers(1, 7))):
        network.add()
    if len(network.values) == 1:
        network._convolution("x", network.values[0][1], "x", 8, 1)
    name, channels, _ = network.values[-1]
    results = [name]
    if draw(st.booleans()):
        flat = network.node("Flatten", [network.node("GlobalAveragePool", [name])])
        results.append(network.node("Gemm", [flat, network.weight(channels, 5), network.weight(5)]))
    return network.model(results)
