"""The encoder of T5-small for texts of any length, with random weights."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_VOCABULARY: Final = 32_128
_WIDTH: Final = 512
_HEADS: Final = 8
_SIZE: Final = _WIDTH // _HEADS
_HIDDEN: Final = 2048
_FARTHEST: Final = 128
"""Distance from which on all tokens share a bias."""
_EPSILON: Final = 1e-6


def t5_encoder(layers: int, length: str, texts: int | str = 1) -> onnx.ModelProto:
    """Return the encoder: biases by distance, which all layers share, norms by the root of the mean square.

    T5 gives distances to buckets, and buckets to biases; both together are one table by distance here.

    Args:
        layers: Number of layers.
        length: Name of the dimension of tokens.
        texts: Number of texts, or the name of that dimension.
    """
    model = _Model()
    words = model.weight("words", (_VOCABULARY, _WIDTH), 1.0)
    x = model.node("Gather", words, "input_ids")
    bias = model.distances()
    for layer in range(layers):
        x = model.attention(f"layer{layer}.attention", x, bias)
        x = model.feed_forward(f"layer{layer}.feed_forward", x)
    model.node("Identity", model.norm("norm", x), result="hidden")
    graph = helper.make_graph(
        model.nodes,
        "t5_encoder",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [texts, length])],
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [texts, length, _WIDTH])],
        model.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class _Model:
    """Nodes and weights that are written so far."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(0)

    def node(self, operator: str, *inputs: str, result: str | None = None, **attributes: object) -> str:
        """Append a node and return the name of its result."""
        name = result or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def weight(self, name: str, shape: tuple[int, ...], scale: float) -> str:
        """Append random weights and return their name."""
        return self.constant(name, (self._rng.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, name: str, values: object) -> str:
        """Append a constant and return its name."""
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def distances(self) -> str:
        """Return the biases (1, heads, length, length) by the distance of a key from a query."""
        size = self.node("Shape", "input_ids", start=1, end=2)
        zero, step = self.constant("zero", np.int64(0)), self.constant("step", np.int64(1))
        positions = self.node("Range", zero, self.node("Squeeze", size), step)
        columns = self.node("Unsqueeze", positions, self.constant("axis", np.array([1])))
        distance = self.node("Sub", positions, columns)
        farthest = self.constant("farthest", np.int64(_FARTHEST))
        least = self.constant("least", np.int64(-_FARTHEST))
        index = self.node("Add", self.node("Clip", distance, least, farthest), farthest)
        table = self.weight("distances", (2 * _FARTHEST + 1, _HEADS), 0.5)
        by_head = self.node("Transpose", self.node("Gather", table, index), perm=[2, 0, 1])
        return self.node("Unsqueeze", by_head, self.constant("first", np.array([0])))

    def norm(self, name: str, x: str) -> str:
        """Divide by the root of the mean square and scale."""
        mean = self.node("ReduceMean", self.node("Mul", x, x), axes=[-1])
        epsilon = self.constant(f"{name}.epsilon", np.float32(_EPSILON))
        root = self.node("Sqrt", self.node("Add", mean, epsilon))
        scale = self.constant(f"{name}.scale", np.ones(_WIDTH, np.float32))
        return self.node("Mul", self.node("Div", x, root), scale)

    def product(self, name: str, x: str, inner: int, outer: int) -> str:
        """Multiply by random weights."""
        return self.node("MatMul", x, self.weight(name, (inner, outer), inner**-0.5))

    def attention(self, name: str, x: str, bias: str) -> str:
        """Attention without a scale, and the residual."""
        normed = self.norm(f"{name}.norm", x)
        shape = self.constant(f"{name}.heads", np.array([0, -1, _HEADS, _SIZE]))
        query, key, value = (
            self.node("Reshape", self.product(f"{name}.{part}", normed, _WIDTH, _WIDTH), shape)
            for part in ("query", "key", "value")
        )
        query, value = (self.node("Transpose", part, perm=[0, 2, 1, 3]) for part in (query, value))
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 2, 3, 1]))
        shares = self.node("Softmax", self.node("Add", scores, bias), axis=-1)
        context = self.node("Transpose", self.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        flat = self.node("Reshape", context, self.constant(f"{name}.flat", np.array([0, -1, _WIDTH])))
        return self.node("Add", self.product(f"{name}.output", flat, _WIDTH, _WIDTH), x)

    def feed_forward(self, name: str, x: str) -> str:
        """Two products with a Relu between them, and the residual."""
        wide = self.product(f"{name}.widen", self.norm(f"{name}.norm", x), _WIDTH, _HIDDEN)
        return self.node("Add", self.product(f"{name}.narrow", self.node("Relu", wide), _HIDDEN, _WIDTH), x)
