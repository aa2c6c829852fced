"""Random quantised programs give what ONNX's reference gives, in every bit, on every instruction set.

Scales are powers of two and sums are short, so that all of float32's operations are exact but the last one
before a QuantizeLinear, which rounds half to even. Zero points are often at the ends of their range, and
scales so small that many results saturate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.effort import examples
from tests.emitted_kernels import x86_sets

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.native.machine.isa import Isa
from intarsia.passes import partition_whole
from intarsia.target import Target

Array = npt.NDArray[Any]
SETS = x86_sets()
SIZE = 8
_LARGEST = 24
"""Maximum extent of an image."""
_LAYERS = ("convolve", "convolve", "enlarge", "pool", "combine")


@dataclass(frozen=True)
class Bytes:
    """A quantised image (1, channels, size, size).

    Attributes:
        name: Name of the bytes.
        channels: Number of channels.
        size: Number of rows and of columns.
        parameters: Names of the scale and the zero point.
    """

    name: str
    channels: int
    size: int
    parameters: tuple[str, str]


@dataclass
class Graph:
    """A program as it grows.

    Attributes:
        draw: Source of decisions.
        random: Source of numbers.
        nodes: Nodes so far.
        held: Constants so far.
        images: Quantised images that later layers may read.
    """

    draw: st.DrawFn
    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    held: list[onnx.TensorProto] = field(default_factory=list)
    images: list[Bytes] = field(default_factory=list)

    def constant(self, array: Array) -> str:
        name = f"c{len(self.held)}"
        self.held.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attrs: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attrs))
        return name

    def parameters(self) -> tuple[str, str]:
        """A scale and a zero point, which fixes the type of the bytes."""
        dtype = self.draw(st.sampled_from((np.uint8, np.int8)))
        limits = np.iinfo(dtype)
        zero = self.draw(st.sampled_from((0, int(limits.min), int(limits.max), 3)))
        scale = np.float32(2.0 ** self.draw(st.integers(-6, 1)))
        return self.constant(np.array(scale)), self.constant(np.array(zero, dtype))

    def quantised(self, value: str, channels: int, size: int) -> Bytes:
        """Add a QuantizeLinear, perhaps behind a Relu."""
        if self.draw(st.booleans()):
            value = self.node("Relu", value)
        parameters = self.parameters()
        image = Bytes(self.node("QuantizeLinear", value, *parameters), channels, size, parameters)
        self.images.append(image)
        return image

    def read(self, image: Bytes) -> str:
        return self.node("DequantizeLinear", image.name, *image.parameters)

    def weights(self, shape: tuple[int, ...], axis: int) -> str:
        """A dequantised constant, with a scale of its own for each channel or one for all."""
        bytes_ = self.random.integers(-128, 128, shape, np.int8)
        count = shape[axis] if self.draw(st.booleans()) else ()
        scale = np.float32(2.0) ** self.random.integers(-7, -3, count)
        zero = np.zeros(scale.shape, np.int8)
        parts = (self.constant(array) for array in (bytes_, np.asarray(scale, np.float32), zero))
        return self.node("DequantizeLinear", *parts, axis=axis)

    def image(self) -> Bytes:
        return self.draw(st.sampled_from(self.images))

    def convolve(self) -> None:
        """Add a dense, a grouped or a depthwise convolution, perhaps with a bias."""
        image, taps = self.image(), self.draw(st.sampled_from((1, 2, 3)))
        taps = min(taps, image.size)
        pad, stride = self.draw(st.integers(0, taps - 1)), self.draw(st.sampled_from((1, 1, 2)))
        size = (image.size + 2 * pad - taps) // stride + 1
        groups = self.draw(st.sampled_from([g for g in (1, 2, 4, image.channels) if image.channels % g == 0]))
        filters = groups * self.draw(st.sampled_from((1, 2, 8) if groups > 1 else (8, 16, 20)))
        shape = filters, image.channels // groups, taps, taps
        args = [self.read(image), self.weights(shape, 0)]
        if self.draw(st.booleans()):
            args.append(self.constant(self.random.integers(-64, 64, filters).astype(np.float32)))
        value = self.node("Conv", *args, group=groups, pads=[pad] * 4, strides=[stride] * 2)
        self.quantised(value, filters, size)

    def enlarge(self) -> None:
        """Add a transposed convolution, perhaps with results cut off, and perhaps with a bias."""
        image, taps = self.image(), self.draw(st.sampled_from((1, 2, 3)))
        stride = self.draw(st.sampled_from((1, 2, 2, 3)))
        pad = self.draw(st.integers(0, (taps - 1) // 2))
        size = (image.size - 1) * stride + taps - 2 * pad
        if image.size == 1 or size > _LARGEST:
            return
        filters = self.draw(st.sampled_from((4, 8, 16, 20)))
        args = [self.read(image), self.weights((image.channels, filters, taps, taps), 1)]
        if self.draw(st.booleans()):
            args.append(self.constant(self.random.integers(-64, 64, filters).astype(np.float32)))
        value = self.node("ConvTranspose", *args, pads=[pad] * 4, strides=[stride] * 2)
        self.quantised(value, filters, size)

    def pool(self) -> None:
        """Add a pool of two rows and columns, perhaps padded, or of all pixels; averages are exact."""
        image, operator = self.image(), self.draw(st.sampled_from(("MaxPool", "AveragePool", "Global")))
        if operator == "Global" and image.size & (image.size - 1) == 0:
            value = self.node("GlobalAveragePool", self.read(image))
            self.quantised(value, image.channels, 1)
        elif operator != "Global" and image.size > 1:
            pad = self.draw(st.integers(0, 1))
            # Of windows at the edge half of the elements are padding, which counts or not: 1, 2 or 4 remain.
            given = {"count_include_pad": self.draw(st.integers(0, 1))} if operator == "AveragePool" else {}
            attrs = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [pad] * 4, **given}
            value = self.node(operator, self.read(image), **attrs)
            self.quantised(value, image.channels, (image.size + 2 * pad) // 2)

    def combine(self) -> None:
        """Add an Add of two images, or a Concat of their channels."""
        first = self.image()
        same = [image for image in self.images if image.size == first.size]
        second, is_joined = self.draw(st.sampled_from(same)), self.draw(st.booleans())
        if is_joined:
            value = self.node("Concat", self.read(first), self.read(second), axis=1)
            self.quantised(value, first.channels + second.channels, first.size)
        elif first.channels == second.channels:
            value = self.node("Add", self.read(first), self.read(second))
            self.quantised(value, first.channels, first.size)

    def classify(self) -> str:
        """Add a product by a matrix, and return its quantised result."""
        image = self.image()
        pixels = self.node("Flatten", self.read(image))
        depth, columns = image.channels * image.size**2, self.draw(st.integers(1, 20))
        product = self.node("MatMul", pixels, self.weights((depth, columns), 1))
        return self.node("QuantizeLinear", product, *self.parameters())


@st.composite
def programs(draw: st.DrawFn) -> onnx.ModelProto:
    graph = Graph(draw, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    channels = draw(st.sampled_from((1, 3, 4, 16, 18)))
    graph.quantised("x", channels, SIZE)
    for layer in draw(st.lists(st.sampled_from(_LAYERS), min_size=1, max_size=4)):
        getattr(graph, layer)()
    results = [graph.classify(), graph.images[-1].name]
    shape = 1, channels, SIZE, SIZE
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    made = [onnx.ValueInfoProto(name=name) for name in results]
    body = helper.make_graph(graph.nodes, "g", ends, made, graph.held)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {value.name: value for value in inferred.graph.value_info}
    del inferred.graph.output[:]
    inferred.graph.output.extend(types[name] for name in results)
    return inferred


@pytest.mark.slow
@given(programs(), st.integers(0, 2**32 - 1), st.sampled_from(sorted(SETS)))
@settings(max_examples=examples(2000, quick=100), deadline=None)
def test_native_is_the_reference(model: onnx.ModelProto, seed: int, name: str) -> None:
    shape = tuple(item.dim_value for item in model.graph.input[0].type.tensor_type.shape.dim)
    x = np.random.default_rng(seed).integers(-40, 40, shape).astype(np.float32) / 4
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    with patch.object(Isa, "host", classmethod(lambda _: SETS[name])):
        executable = build(partition_whole(from_onnx(model), Target.for_toolchain("native", threads=1)))
    for found, exact in zip(executable(x), expected, strict=True):
        np.testing.assert_array_equal(found, exact)
