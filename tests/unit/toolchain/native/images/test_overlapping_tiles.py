"""Tiles that overlap: what reads a sum twice must not read it where the result of another tile is."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from intarsia import build, from_onnx
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.target import Target
from intarsia.toolchain.native.images.image_kernel import ImageKernel

SIZES: Final = ((1, 57, 57), (2, 13, 50), (1, 58, 61), (1, 41, 43), (3, 9, 9), (1, 56, 56), (1, 57, 57))
"""Numbers of images, height and width: of as many tiles as are computed at once, which end with the image."""
GATES: Final = {
    "silu": ["s = Sigmoid (c)", "y = Mul (c, s)"],
    "gate of a sum": ["d = Mul (c, c)", "s = Tanh (d)", "t = Add (c, s)", "y = Mul (t, c)"],
}


def network(gate: str, channels: int, filters: int, taps: int) -> IRModule:
    """Return a convolution with a gate from x to y, with random weights."""
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.standard_normal((filters, channels, taps, taps)) / (taps * channels**0.5),
        "b": rng.standard_normal(filters),
    }
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[taps // 2] * 4)]
    for text in GATES[gate]:
        result, _, call = text.partition(" = ")
        name, _, args = call.rstrip(")").partition(" (")
        nodes.append(helper.make_node(name, args.split(", "), [result]))
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", channels, "h", "w"])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


@pytest.mark.parametrize("options", ["-mcpu=haswell -threads=2", "-threads=1"])
@pytest.mark.parametrize(
    ("channels", "filters", "taps"), [(16, 32, 3), (32, 64, 3), (24, 40, 1), (16, 16, 5)]
)
@pytest.mark.parametrize("gate", GATES)
def test_gates_are_applied_once(gate: str, channels: int, filters: int, taps: int, options: str) -> None:
    module = network(gate, channels, filters, taps)
    reference = build(module, "onnxruntime")
    with build(partition_whole(module, Target(f"cpu -toolchain=native {options}"))) as executable:
        (kernel,) = executable.kernels
        assert isinstance(kernel, ImageKernel)
        for count, *size in SIZES:
            x = np.random.default_rng(size).standard_normal((count, channels, *size)).astype(np.float32)
            kernel._arena.array[:] = 0xFF
            (result,), (right,) = executable.run_flat(x=x), reference.run_flat(x=x)
            np.testing.assert_allclose(np.asarray(result), np.asarray(right), rtol=1e-4, atol=1e-4)
