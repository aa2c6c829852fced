"""Programs whose products run on tensor cores, on a fake GPU."""

from collections.abc import Sequence
from math import prod

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.gpu_on_cpu.fake_gpu import fake_context, fake_image

import intarsia as ia
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.native.gpu.emit_kernels import Launch
from intarsia.passes import InferType
from intarsia.toolchain.native.gpu.compile_program import compile_program
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram

pytestmark = pytest.mark.quick_tests(2)

TARGET = "cpu -toolchain=native -threads=1"
HALF = (
    "def @main(%x: Tensor[(2, 9, 70), float16], %w: Tensor[(70, 33), float16], %b: Tensor[(33,), float16]) "
    "{ Relu(Add(MatMul(%x, %w), %b)) }"
)


def bfloat_product() -> IRModule:
    """A product by a constant matrix, whose numbers stand in words of two, with a bias."""
    rng = np.random.default_rng(1)
    weights = [
        helper.make_tensor(name, TensorProto.BFLOAT16, shape, rng.standard_normal(prod(shape)))
        for name, shape in (("w", (70, 33)), ("b", (33,)))
    ]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, shape)]
        for name, shape in (("x", (2, 9, 70)), ("y", (2, 9, 33)))
    ]
    graph = helper.make_graph(nodes, "g", *ports, weights)
    return ia.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_product_of_narrow_floats_runs_on_tensor_cores(dtype: str) -> None:
    mod = InferType()(parse_module(HALF)) if dtype == "float16" else bfloat_product()
    exe = ia.build(mod, TARGET)
    (kernel,) = exe.kernels
    texts: list[str] = []

    def image(text: str, launches: Sequence[Launch]) -> bytes:
        texts.append(text)
        return fake_image(text, launches)

    program = compile_program(kernel.source, "sm_80", image)
    assert "@llvm.nvvm.mma.m16n8k16" in texts[0]
    assert len(program.launches) == 1
    context = fake_context()
    loaded = LoadedProgram(context, program)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(port.shape).astype(port.dtype) for port in program.params]
    (result,) = loaded.run(inputs)
    expected = np.asarray(exe(*inputs)).astype(np.float64)
    error = np.linalg.norm(result.astype(np.float64) - expected) / np.linalg.norm(expected)
    assert error < (1e-3 if dtype == "float16" else 5e-3)
    loaded.close()
    context.close()
