"""A layer as an ONNX model, with the operations and bytes that it takes.

    net = LayerWriter()
    x = net.input((1, 16, 32, 32))
    x = net.node("Conv", x, net.weight((8, 16, 3, 3)), pads=[1, 1, 1, 1])
    layer = net.finish(net.node("Relu", x))
    layer.model(seed=0)

Every node gets its type when it is written, so a node that ONNX refuses is refused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, defs, helper, numpy_helper, shape_inference

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

OPSET: Final = 18
_IR_VERSION: Final = 9
_FLOAT_BYTES: Final = 4
_GATHERS: Final = frozenset({"Gather", "GatherElements", "GatherND"})
_INPUTS_SEED: Final = 1
"""Seed of the inputs beside that of the weights."""


@dataclass(frozen=True)
class Tensor:
    """An input or a weight, whose elements are drawn when they are needed.

    Attributes:
        name: Name in the graph.
        shape: Its shape.
        low: Least element.
        high: Bound of integer elements; 0 for float32.
        scale: Factor of standard normal elements; 0 for float32 elements between 0.5 and 1.5.
    """

    name: str
    shape: Shape
    low: int = 0
    high: int = 0
    scale: float = 1.0

    def draw(self, generator: np.random.Generator) -> Array:
        """Return elements."""
        if self.high:
            return generator.integers(self.low, self.high, self.shape)
        if not self.scale:
            return generator.random(self.shape, np.float32) + np.float32(0.5)
        return generator.standard_normal(self.shape, np.float32) * np.float32(self.scale)

    @property
    def bytes(self) -> int:
        """Size of the elements."""
        return prod(self.shape) * (8 if self.high else _FLOAT_BYTES)


@dataclass(frozen=True)
class Layer:
    """A written layer.

    Attributes:
        graph: The model without its weights.
        inputs: Its inputs.
        weights: Its weights.
        operations: Number of multiplications and additions of products and directly computed convolutions.
        bytes: Bytes of inputs, weights and results; of a table, those of the elements that are gathered.
        passes: Bytes of the results of all nodes.
    """

    graph: ModelProto
    inputs: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    operations: int
    bytes: int
    passes: int

    def model(self, seed: int = 0) -> ModelProto:
        """Return the model with weights."""
        generator, model = np.random.default_rng(seed), ModelProto()
        model.CopyFrom(self.graph)
        for weight in self.weights:
            model.graph.initializer.append(numpy_helper.from_array(weight.draw(generator), weight.name))
        return model

    def arrays(self, seed: int = 0) -> dict[str, Array]:
        """Return an array for each input."""
        generator = np.random.default_rng([seed, _INPUTS_SEED])
        return {tensor.name: tensor.draw(generator) for tensor in self.inputs}


class LayerWriter:
    """A graph under construction; tensors are known by their names."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._inputs: list[Tensor] = []
        self._weights: list[Tensor] = []
        self._constants: dict[str, TensorProto] = {}
        self._types: dict[str, TypeProto] = {}
        self._operations = 0
        self._passes = 0
        self._gathered: dict[str, int] = {}

    def input(self, shape: Shape) -> str:
        """Add a float32 input."""
        return self._declare(self._inputs, Tensor(f"x{len(self._inputs)}", shape))

    def indices(self, shape: Shape, low: int, high: int) -> str:
        """Add an input of integers between `low` and `high` - 1."""
        return self._declare(self._inputs, Tensor(f"x{len(self._inputs)}", shape, low, high))

    def weight(self, shape: Shape, fan_in: int | None = None) -> str:
        """Add a weight whose elements keep the size of what is multiplied with it.

        Args:
            shape: Its shape.
            fan_in: Terms of the sums; by default, elements of all dimensions but the first.
        """
        terms = fan_in or prod(shape[1:])
        return self._declare(self._weights, Tensor(f"w{len(self._weights)}", shape, scale=1 / sqrt(terms)))

    def positive(self, shape: Shape) -> str:
        """Add a weight with elements between 0.5 and 1.5."""
        return self._declare(self._weights, Tensor(f"w{len(self._weights)}", shape, scale=0.0))

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a constant of known contents."""
        name = f"c{len(self._constants)}"
        tensor = numpy_helper.from_array(np.array(value, dtype), name)
        self._constants[name] = tensor
        self._types[name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        return name

    def scalar(self, value: float) -> str:
        """Add a float32 scalar."""
        return self.constant(value, np.float32)

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result, and return its name."""
        return self.nodes(1, operator, *inputs, **attributes)[0]

    def nodes(self, count: int, operator: str, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Add a node with some results, and return their names.

        Raises:
            ValueError: A result has no elements.
        """
        results = tuple(f"t{len(self._nodes)}_{number}" for number in range(count))
        node = helper.make_node(operator, inputs, results, **attributes)
        self._types |= shape_inference.infer_node_outputs(
            defs.get_schema(operator, OPSET),
            node,
            {name: self._types[name] for name in inputs if name},
            {name: self._constants[name] for name in inputs if name in self._constants},
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=_IR_VERSION,
        )
        if not all(min(self.shape(name), default=1) > 0 for name in results):
            raise ValueError(f"{operator} has an empty result")
        self._nodes.append(node)
        if operator in _GATHERS:
            self._gathered[inputs[0]] = _FLOAT_BYTES * prod(self.shape(results[0]))
        self._passes += sum(_FLOAT_BYTES * prod(self.shape(name)) for name in results)
        if operator in _OPERATIONS:
            shapes = [self.shape(name) if name else () for name in (*inputs, *results)]
            self._operations += _OPERATIONS[operator](shapes, attributes)
        return results

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor."""
        return tuple(dim.dim_value for dim in self._types[name].tensor_type.shape.dim)

    def reshape(self, x: str, *shape: int) -> str:
        """Add a Reshape."""
        return self.node("Reshape", x, self.constant(shape))

    def finish(self, *results: str) -> Layer:
        """Return the layer with some results."""
        graph = helper.make_graph(
            self._nodes,
            "layer",
            [helper.make_value_info(tensor.name, self._types[tensor.name]) for tensor in self._inputs],
            [helper.make_value_info(name, self._types[name]) for name in results],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION
        )
        tensors = (*self._inputs, *self._weights)
        moved = sum(min(tensor.bytes, self._gathered.get(tensor.name, tensor.bytes)) for tensor in tensors)
        moved += sum(_FLOAT_BYTES * prod(self.shape(name)) for name in results)
        return Layer(model, tuple(self._inputs), tuple(self._weights), self._operations, moved, self._passes)

    def _declare(self, tensors: list[Tensor], tensor: Tensor) -> str:
        element = TensorProto.INT64 if tensor.high else TensorProto.FLOAT
        tensors.append(tensor)
        self._types[tensor.name] = helper.make_tensor_type_proto(element, tensor.shape)
        return tensor.name


def _convolution(shapes: list[Shape], _: Mapping[str, Any]) -> int:
    return 2 * prod(shapes[-1]) * prod(shapes[1][1:])


def _transposed_convolution(shapes: list[Shape], _: Mapping[str, Any]) -> int:
    return 2 * prod(shapes[0]) * prod(shapes[1][1:])


def _product(shapes: list[Shape], attributes: Mapping[str, Any]) -> int:
    return 2 * prod(shapes[-1]) * shapes[0][0 if attributes.get("transA") else -1]


def _recurrent(shapes: list[Shape], _: Mapping[str, Any]) -> int:
    steps, batch = shapes[0][:2]
    return 2 * steps * batch * (prod(shapes[1]) + prod(shapes[2]))


_OPERATIONS: Final[Mapping[str, Callable[[list[Shape], Mapping[str, Any]], int]]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "MatMul": _product,
    "Gemm": _product,
    "LSTM": _recurrent,
    "GRU": _recurrent,
}
"""Functions of the shapes of inputs and results, and of the attributes, to the number of operations."""
