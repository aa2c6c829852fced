"""Random weights for a model that has none yet: seeded, and scaled so that the outputs have unit variance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from intarsia.frontend.zoo.fan_in import CONTRACTIONS, Shape, fan_in
from intarsia.frontend.zoo.moments import LSTM, STANDARD_NORMAL, Moments, Signal, output_moments, swish
from intarsia.support.digest import digest_bytes

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

VIEWS = frozenset({"Reshape", "Transpose", "Unsqueeze", "Squeeze"})


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution."""

    mean: float
    std: float

    @property
    def moments(self) -> Moments:
        """Its mean and mean square."""
        return Moments(self.mean, self.mean**2 + self.std**2)


SCALE = Normal(1.0, 0.05)  # the spreads are enough to make any two channels differ
SHIFT = Normal(0.0, 0.05)
SWISH_SCALE = Normal(0.3, 0.05)  # larger inputs of x sigmoid(x) grow from layer to layer, by its curvature
GATE_VARIANCE = 0.1  # of a gate's argument: gates stay near one half, as at the start of training
RECURRENT_VARIANCE = 0.1  # share of the states in the gates' inputs; with much more, rounding errors grow


def draw_weights(model: ModelProto, seed: int) -> None:
    """Fill every float32 initializer that has a shape but no data, in place.

    The distribution follows from the first operator that uses the weight: contractions get a scale that makes
    their output's variance 1 (less where a gate's sigmoid follows), normalisations get scales and variances
    near 1 (smaller scales before x sigmoid(x)), everything else shifts near 0.
    Each tensor has a generator of its own, seeded by `seed` and the tensor's name. Inputs of the model are
    taken to be standard normal. Nodes must be in topological order and shapes static.
    """
    _Drawing(model, seed).run()


def draw(distribution: Normal, size: int, seed: int, name: str) -> bytes:
    """Draw `size` little-endian float32 samples; a pure function of the arguments (PCG64, ziggurat)."""
    entropy = (seed, int.from_bytes(digest_bytes(name.encode()), "little"))
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    samples = generator.standard_normal(size, dtype=np.float32)
    samples *= np.float32(distribution.std)
    samples += np.float32(distribution.mean)
    return samples.astype("<f4", copy=False).tobytes()


class _Drawing:
    """A pass over a graph that draws each weight at its first user."""

    def __init__(self, model: ModelProto, seed: int) -> None:
        from onnx import TensorProto

        self._graph = model.graph
        self._seed = seed
        self._shapes = _static_shapes(model)
        self._moments = {value.name: STANDARD_NORMAL for value in model.graph.input}
        self._readers = _readers(model)
        self._gated: dict[str, str] = {}  # argument of each sigmoid, to recognise x sigmoid(x)
        self._origins: dict[str, object] = {}
        self._undrawn: dict[str, TensorProto] = {}
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and not tensor.HasField("raw_data"):
                self._undrawn[tensor.name] = tensor
            else:
                self._moments[tensor.name] = _constant_moments(tensor)

    def run(self) -> None:
        for node in self._graph.node:
            if node.op_type in VIEWS and node.input[0] in self._undrawn:
                # A reshaped weight stays undrawn: the operator that uses it determines the distribution.
                self._undrawn[node.output[0]] = self._undrawn[node.input[0]]
                continue
            for index, name in enumerate(node.input):
                if name in self._undrawn:
                    self._fill(self._undrawn[name], self._distribution(node, index))
            self._moments.update(dict.fromkeys(node.output, self._of_output(node)))

    def _of_output(self, node: NodeProto) -> Moments:
        if node.op_type == "Sigmoid":
            self._gated[node.output[0]] = node.input[0]
        if node.op_type == "Mul" and self._gated.get(node.input[1]) == node.input[0]:
            return swish(self._moments[node.input[0]])
        self._origins[node.output[0]] = _origin(node)
        # Both operands are equal, not independent: their sum is twice one of them, with 4 times the variance.
        if node.op_type == "Add" and len({self._origins.get(name, name) for name in node.input}) == 1:
            return self._moments[node.input[0]].scaled(2)
        inputs = tuple(self._signal(name) for name in node.input if name)
        return output_moments(node, inputs, self._shapes[node.output[0]])

    def _fill(self, tensor: TensorProto, distribution: Normal) -> None:
        tensor.raw_data = draw(distribution, prod(tensor.dims), self._seed, tensor.name)
        for name in [name for name, other in self._undrawn.items() if other is tensor]:
            del self._undrawn[name]
            self._moments[name] = distribution.moments

    def _signal(self, name: str) -> Signal:
        return Signal(self._shapes[name], self._moments[name])

    def _distribution(self, node: NodeProto, index: int) -> Normal:
        name = node.input[index]
        if node.op_type in CONTRACTIONS and index == 1:
            data = self._signal(node.input[0])
            products = fan_in(node, data.shape, self._shapes[name], self._shapes[node.output[0]])
            variance = GATE_VARIANCE if self._readers.get(node.output[0]) == {"Sigmoid"} else 1
            return Normal(0.0, _rounded(sqrt(variance / (products * data.moments.square))))
        match node.op_type, index:
            case "LSTM", 1:
                square = self._signal(node.input[0]).moments.square
                return Normal(
                    0.0, _rounded(sqrt((1 - RECURRENT_VARIANCE) / (self._shapes[name][-1] * square)))
                )
            case "LSTM", 2:
                return Normal(
                    0.0, _rounded(sqrt(RECURRENT_VARIANCE / (self._shapes[name][-1] * LSTM.square)))
                )
            case "BatchNormalization", 1 if self._readers.get(node.output[0]) == {"Sigmoid", "Mul"}:
                return SWISH_SCALE
            case ("BatchNormalization", 1 | 4) | ("LayerNormalization", 1) | ("Mul", _):
                return SCALE
            case "Gather", 0:
                return Normal(0.0, _rounded(1 / sqrt(self._shapes[name][-1])))  # also right for a tied output
            case _:
                return SHIFT


def _origin(node: NodeProto) -> object:
    """Return a key that is equal for nodes that compute the same."""
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    return (node.op_type, *node.input, *attributes)


def _rounded(std: float) -> float:
    """Round to six digits, so that the last bit of another machine's `exp` does not change the weights."""
    return float(f"{std:.6g}")


def _constant_moments(tensor: TensorProto) -> Moments:
    from onnx.numpy_helper import to_array

    values = to_array(tensor).astype(np.float64)
    return Moments(float(np.mean(values)), float(np.mean(np.square(values))))


def _readers(model: ModelProto) -> Mapping[str, set[str]]:
    """Return the types of the operators that read each tensor."""
    readers: dict[str, set[str]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, set()).add(node.op_type)
    return readers


def _static_shapes(model: ModelProto) -> Mapping[str, Shape]:
    from onnx.shape_inference import infer_shapes

    graph = infer_shapes(model, strict_mode=True).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        shapes[value.name] = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    return shapes
