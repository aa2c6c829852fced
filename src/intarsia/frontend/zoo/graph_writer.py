"""Writing an ONNX graph layer by layer.

    net = GraphWriter("example")
    x = net.input("image", (1, 3, 32, 32))
    with net.scope("stem"):
        x = net.conv(x, channels=(3, 16), kernel=3, pad=1)
        x = net.relu(net.batch_norm(x, 16))
    net.output(x, "features", (1, 16, 32, 32))
    model = net.finish(seed=0)

A tensor is known by its name. Names say where a thing is: `stem/conv.weight`, `stem/relu`. Weights are only
declared while writing; `finished` draws them (`weights.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.frontend.zoo.weights import draw_weights

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET = 20  # the first with Gelu
IR_VERSION = 9  # the one that came with opset 20
INPUT_RANGE_KEY = "intarsia.input_range."
"""The metadata key, before the input's name, of the values `lo,hi` an integer input takes: [lo, hi)."""


class GraphWriter:
    """A graph under construction; each method appends one layer and returns the name of its output.

    A layer's method takes the layer's name last: with the open scopes before it, it names the node, its
    output and, followed by `.weight`, `.bias` and so on, its weights. It must be unique within the scope.
    """

    def __init__(self, name: str) -> None:
        from onnx import helper

        self._model = helper.make_model(
            helper.make_graph([], name, [], []),
            producer_name="intarsia.zoo",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        self._graph = self._model.graph
        self._scopes: list[str] = []
        self._scalars: dict[float, str] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Put `name/` before the names of everything written inside."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def finish(self, seed: int) -> ModelProto:
        """The model, its weights drawn from `seed`; the writer must not be used afterwards."""
        draw_weights(self._model, seed)
        return self._model

    # Inputs, weights, outputs

    def input(self, name: str, shape: tuple[int, ...]) -> str:
        """A float32 input, to be fed standard normal values."""
        from onnx import TensorProto, helper

        self._graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def integer_input(self, name: str, shape: tuple[int, ...], values: range) -> str:
        """An int64 input that takes the given values; the range is recorded in the model's metadata."""
        from onnx import TensorProto, helper

        self._graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
        self._model.metadata_props.add(key=INPUT_RANGE_KEY + name, value=f"{values.start},{values.stop}")
        return name

    def output(self, tensor: str, name: str, shape: tuple[int, ...]) -> None:
        """Make the last written node's output the model's float32 output `name`."""
        from onnx import TensorProto, helper

        node = self._graph.node[-1]
        assert list(node.output) == [tensor], "only what was written last can be renamed"
        node.output[0] = name
        self._graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def weight(self, name: str, shape: tuple[int, ...]) -> str:
        """A float32 weight, drawn at the end."""
        from onnx import TensorProto

        full = self._full_name(name)
        self._graph.initializer.add(name=full, data_type=TensorProto.FLOAT, dims=shape)
        return full

    def constant(self, name: str, value: np.ndarray[Any, Any]) -> str:
        """A constant that is part of the architecture: a shape, a mask, positions."""
        from onnx import numpy_helper

        full = self._full_name(name)
        self._graph.initializer.append(numpy_helper.from_array(value, full))
        return full

    def scalar(self, value: float) -> str:
        """A float32 scalar, one for each value in the whole graph."""
        if value not in self._scalars:
            scopes, self._scopes = self._scopes, []
            self._scalars[value] = self.constant(f"scalar_{value:g}", np.array(value, np.float32))
            self._scopes = scopes
        return self._scalars[value]

    # Operators

    def node(self, operator: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Any operator with one output."""
        return self.nodes(operator, *inputs, name=name, outputs=("",), **attributes)[0]

    def nodes(
        self, operator: str, *inputs: str, name: str, outputs: tuple[str, ...], **attributes: Any
    ) -> tuple[str, ...]:
        """Any operator; its outputs are called `<name><output>`."""
        from onnx import helper

        full = self._full_name(name)
        results = tuple(full + output for output in outputs)
        self._graph.node.append(helper.make_node(operator, inputs, results, name=full, **attributes))
        return results

    def relu(self, x: str, name: str = "relu") -> str:
        """max(x, 0)."""
        return self.node("Relu", x, name=name)

    def clip(self, x: str, low: float, high: float, name: str = "clip") -> str:
        """Elements limited to [low, high]."""
        return self.node("Clip", x, self.scalar(low), self.scalar(high), name=name)

    def swish(self, x: str, name: str = "swish") -> str:
        """The input times its sigmoid, as two nodes."""
        return self.node("Mul", x, self.node("Sigmoid", x, name=f"{name}.sigmoid"), name=name)

    def reshape(self, x: str, shape: tuple[int, ...], name: str = "reshape") -> str:
        """The same elements in another shape."""
        return self.node("Reshape", x, self.constant(f"{name}.shape", np.array(shape, np.int64)), name=name)

    def transpose(self, x: str, order: tuple[int, ...], name: str = "transpose") -> str:
        """Axes in another order."""
        return self.node("Transpose", x, name=name, perm=order)

    # Layers

    def conv(
        self,
        x: str,
        channels: tuple[int, int],
        kernel: int,
        *,
        stride: int = 1,
        pad: int | tuple[int, int] = 0,
        groups: int = 1,
        bias: bool = False,
        name: str = "conv",
    ) -> str:
        """A 2-D convolution, NCHW; `channels` are (in, out), `pad` may be (before, after)."""
        weight = self.weight(f"{name}.weight", (channels[1], channels[0] // groups, kernel, kernel))
        weights = [weight, self.weight(f"{name}.bias", (channels[1],))] if bias else [weight]
        return self.node("Conv", x, *weights, name=name, group=groups, **_window(kernel, stride, pad))

    def conv_transpose(
        self,
        x: str,
        channels: tuple[int, int],
        kernel: int,
        *,
        stride: int = 1,
        pad: int = 0,
        bias: bool = False,
        name: str = "conv_transpose",
    ) -> str:
        """A 2-D transposed convolution, NCHW; `channels` are (in, out)."""
        weight = self.weight(f"{name}.weight", (*channels, kernel, kernel))
        weights = [weight, self.weight(f"{name}.bias", (channels[1],))] if bias else [weight]
        return self.node("ConvTranspose", x, *weights, name=name, **_window(kernel, stride, pad))

    def max_pool(self, x: str, kernel: int, *, stride: int, pad: int = 0, name: str = "max_pool") -> str:
        """The maximum of each window, NCHW."""
        return self.node("MaxPool", x, name=name, **_window(kernel, stride, pad))

    def average_pool(
        self, x: str, kernel: int, *, stride: int = 1, pad: int = 0, name: str = "average_pool"
    ) -> str:
        """The average of what each window has of the image, NCHW."""
        return self.node("AveragePool", x, name=name, **_window(kernel, stride, pad))

    def batch_norm(self, x: str, channels: int, *, epsilon: float = 1e-5, name: str = "batch_norm") -> str:
        """Inference-time batch normalisation along axis 1."""
        parts = ("weight", "bias", "running_mean", "running_var")
        weights = [self.weight(f"{name}.{part}", (channels,)) for part in parts]
        return self.node("BatchNormalization", x, *weights, name=name, epsilon=epsilon)

    def layer_norm(self, x: str, width: int, *, epsilon: float, name: str = "layer_norm") -> str:
        """Layer normalisation of the last axis."""
        weights = [self.weight(f"{name}.{part}", (width,)) for part in ("weight", "bias")]
        return self.node("LayerNormalization", x, *weights, name=name, axis=-1, epsilon=epsilon)

    def linear(self, x: str, widths: tuple[int, int], name: str = "linear") -> str:
        """The last axis times W plus b, as MatMul and Add; W is (in, out)."""
        product = self.node("MatMul", x, self.weight(f"{name}.weight", widths), name=f"{name}.matmul")
        return self.node("Add", product, self.weight(f"{name}.bias", (widths[1],)), name=name)

    def dense(self, x: str, widths: tuple[int, int], name: str = "dense") -> str:
        """A matrix times W^T plus b, as one Gemm; W is (out, in)."""
        weight = self.weight(f"{name}.weight", (widths[1], widths[0]))
        return self.node("Gemm", x, weight, self.weight(f"{name}.bias", (widths[1],)), name=name, transB=1)

    def lstm(self, x: str, widths: tuple[int, int], name: str = "lstm") -> str:
        """The hidden states of a forward LSTM that starts from zeros: (sequence, batch, in) to (.., out)."""
        _, width = widths
        weights = (
            self.weight(f"{name}.weight", (1, 4 * width, widths[0])),
            self.weight(f"{name}.recurrent_weight", (1, 4 * width, width)),
            self.weight(f"{name}.bias", (1, 8 * width)),
        )
        states = self.node("LSTM", x, *weights, name=f"{name}.states", hidden_size=width)
        direction = self.constant(f"{name}.direction", np.array([1], np.int64))
        return self.node("Squeeze", states, direction, name=name)

    def embedding(self, ids: str, rows: int, width: int, name: str = "embedding") -> str:
        """Rows of a table (`<name>.weight`) by their numbers."""
        return self.node("Gather", self.weight(f"{name}.weight", (rows, width)), ids, name=name, axis=0)

    def classifier(self, x: str, features: int, classes: int) -> None:
        """The average of each channel of (1, features, h, w), then class scores: the output `logits`."""
        with self.scope("classifier"):
            x = self.node("GlobalAveragePool", x, name="pool")
            x = self.node("Flatten", x, name="flatten", axis=1)
            self.output(self.dense(x, (features, classes)), "logits", (1, classes))

    def _full_name(self, name: str) -> str:
        return "/".join([*self._scopes, name])


def _window(kernel: int, stride: int, pad: int | tuple[int, int]) -> dict[str, list[int]]:
    begin, end = (pad, pad) if isinstance(pad, int) else pad
    return {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [begin, begin, end, end]}
