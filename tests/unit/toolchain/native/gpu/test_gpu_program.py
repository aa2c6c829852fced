"""Whole programs on a fake GPU, whose kernels are the LLVM IR for NVPTX on this CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.gpu_on_cpu.fake_gpu import fake_context, fake_image, fake_number

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import CompileError, ExecutionError, UsageError
from intarsia.toolchain.native.gpu.compile_program import compile_program
from intarsia.toolchain.native.gpu.gpu_program import GpuProgram
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram

pytestmark = pytest.mark.quick_tests(6)

TARGET = "cpu -toolchain=native -threads=1"


def compiled(mod: IRModule) -> tuple[Executable, GpuProgram]:
    """A program on this CPU, and for the fake GPU."""
    exe = ia.build(mod, TARGET)
    return exe, compile_program(source_of(exe), "sm_80", fake_image)


def source_of(exe: Executable) -> KernelSource:
    (kernel,) = exe.kernels
    return kernel.source


def inputs_of(program: GpuProgram, seed: int = 0) -> list[npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal(port.shape).astype(port.dtype)
        if port.dtype.kind == "f"
        else rng.integers(0, 100, port.shape).astype(port.dtype)
        for port in program.params
    ]


def listed(values: object) -> list[npt.NDArray[Any]]:
    return list(values) if isinstance(values, (list, tuple)) else [np.asarray(values)]


def check(mod: IRModule) -> None:
    exe, program = compiled(mod)
    context = fake_context()
    loaded = LoadedProgram(context, program)
    for seed in range(2):
        inputs = inputs_of(program, seed)
        for found, expected in zip(loaded.run(inputs), listed(exe(*inputs)), strict=True):
            # The CPU rounds float16 numbers only where they leave, and the GPU in between as well.
            relative = 1e-2 if expected.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(found, expected, rtol=relative, atol=1e-5)
    loaded.close()
    context.close()


PROGRAMS = {
    "attention with shared memory that its launch asks for": (
        "def @main(%q: Tensor[(1, 1, 9, 600), float32], %k: Tensor[(1, 1, 9, 600), float32], "
        "%v: Tensor[(1, 1, 9, 24), float32]) { Attention(%q, %k, %v) }"
    ),
    "product with its epilogue": (
        "def @main(%x: Tensor[(9, 70), float32], %w: Tensor[(70, 33), float32]) { Relu(MatMul(%x, %w)) }"
    ),
    "convolution": (
        "def @main(%x: Tensor[(1, 3, 9, 9), float32], %w: Tensor[(8, 3, 3, 3), float32]) "
        "{ Tanh(Conv(%x, %w, pads=[1, 1, 1, 1], strides=[2, 2])) }"
    ),
    "rows": "def @main(%x: Tensor[(5, 200), float32]) { Softmax(%x, axis=-1) }",
    "sum of all": "def @main(%x: Tensor[(5, 200), float32]) { ReduceSum(%x, keepdims=0) }",
    "two results": (
        "def @main(%x: Tensor[(5, 20), float32]) { %0 = Exp(%x); (%0, Transpose(%0, perm=[1, 0]), %x) }"
    ),
    "position of the greatest": "def @main(%x: Tensor[(5, 90), float32]) { ArgMax(%x, axis=1) }",
    "pooling": (
        "def @main(%x: Tensor[(1, 4, 9, 9), float32]) { MaxPool(%x, kernel_shape=[3, 3], strides=[2, 2]) }"
    ),
    "half precision": (
        "def @main(%x: Tensor[(9, 70), float16], %w: Tensor[(70, 33), float16]) { Sigmoid(MatMul(%x, %w)) }"
    ),
    "a result that is a constant": (
        "def @main(%x: Tensor[(5, 9), float32]) { (Relu(%x), Exp(float32(2.0))) }"
    ),
    "running sum": "def @main(%x: Tensor[(5, 9), float32]) { CumSum(%x, int64(1)) }",
}


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_it_does_on_the_cpu(name: str) -> None:
    check(InferType()(parse_module(PROGRAMS[name])))


@pytest.mark.parametrize(
    "name",
    [
        "mnist",
        pytest.param("bert_tiny", marks=pytest.mark.slow),
        pytest.param("gpt2_tiny", marks=pytest.mark.slow),
    ],
)
def test_a_model_of_the_zoo_computes_what_it_does_on_the_cpu(name: str) -> None:
    check(ia.from_onnx(build_model(name)))


def test_weights_are_uploaded_once() -> None:
    _, program = compiled(ia.from_onnx(build_model("mnist")))
    context = fake_context()
    before = fake_number("fake_uploaded_bytes")
    loaded = LoadedProgram(context, program)
    weights = sum(constant.array.nbytes for constant in program.constants)
    assert fake_number("fake_uploaded_bytes") - before == weights > 0
    inputs = inputs_of(program)
    for _ in range(3):
        before = fake_number("fake_uploaded_bytes")
        loaded.run(inputs)
        assert fake_number("fake_uploaded_bytes") - before == sum(array.nbytes for array in inputs)
    loaded.close()
    context.close()


def test_launches_on_addresses_that_come_again_are_recorded() -> None:
    exe, program = compiled(ia.from_onnx(build_model("mnist")))
    context = fake_context()
    loaded = LoadedProgram(context, program)
    counts = []
    for seed in range(4):
        before = fake_number("fake_kernel_launches"), fake_number("fake_graph_launches")
        inputs = inputs_of(program, seed)
        (result,) = loaded.run(inputs)
        np.testing.assert_allclose(result, exe(*inputs), rtol=1e-4, atol=1e-5)
        after = fake_number("fake_kernel_launches"), fake_number("fake_graph_launches")
        counts.append((after[0] - before[0], after[1] - before[1]))
    launches = len(program.launches)
    assert counts == [(launches, 0), (launches, 1), (0, 1), (0, 1)]
    graphs = fake_number("fake_graphs")
    loaded.close()
    assert fake_number("fake_graphs") == graphs - 1
    context.close()


def test_few_recorded_launches_are_kept() -> None:
    _, program = compiled(InferType()(parse_module(PROGRAMS["two results"])))
    context = fake_context()
    loaded = LoadedProgram(context, program)
    before = fake_number("fake_graphs")
    ports = (*program.params, *program.results)
    held = [[context.new_block(port.nbytes) for port in ports] for _ in range(11)]
    for blocks in held:
        for _ in range(2):
            loaded.launch([block.address for block in blocks])
    assert fake_number("fake_graphs") - before == 8
    loaded.close()
    assert fake_number("fake_graphs") == before
    context.close()


def test_equal_computations_are_one_kernel() -> None:
    text = "def @main(%x: Tensor[(4, 8), float32]) { %0 = Softmax(%x, axis=-1); Softmax(%0, axis=-1) }"
    _, program = compiled(InferType()(parse_module(text)))
    assert len(program.launches) == 2
    assert len({launch.symbol for launch in program.launches}) == 1


def wrong_shape(loaded: LoadedProgram) -> None:
    loaded.run([np.zeros((3, 3), np.float32)])


def wrong_number(loaded: LoadedProgram) -> None:
    loaded.run([])


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (wrong_shape, r"x is float32\[3, 3\]; expected float32\[5, 200\]"),
        (wrong_number, "found 0 inputs; expected 1"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(call: Callable[[LoadedProgram], None], problem: str) -> None:
    _, program = compiled(InferType()(parse_module(PROGRAMS["rows"])))
    context = fake_context()
    loaded = LoadedProgram(context, program)
    with pytest.raises(ExecutionError, match=problem):
        call(loaded)
    loaded.close()
    with pytest.raises(UsageError, match="this program is closed"):
        loaded.run(inputs_of(program))
    context.close()


def test_a_program_that_does_not_fit_leaves_no_memory_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    _, program = compiled(InferType()(parse_module(PROGRAMS["product with its epilogue"])))
    context = fake_context()
    monkeypatch.setenv("FAKE_CUDA_BYTES", "100")
    modules = fake_number("fake_modules")
    with pytest.raises(MemoryError):
        LoadedProgram(context, program)
    assert fake_number("fake_modules") == modules
    context.close()


def test_results_of_sizes_known_at_run_time_are_refused() -> None:
    exe = ia.build(InferType()(parse_module("def @main(%x: Tensor[(9,), float32]) { NonZero(%x) }")), TARGET)
    with pytest.raises(CompileError, match="no GPU code for results whose sizes are known at run time only"):
        compile_program(source_of(exe), "sm_80", fake_image)
