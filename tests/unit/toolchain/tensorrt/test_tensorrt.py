"""The toolchain tensorrt with a module in place of TensorRT: which calls it makes, and what it refuses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.gpu_on_cpu.fake_machine import machine_with_gpus
from tests.unit.toolchain.tensorrt import fake_tensorrt

import intarsia as ia
from intarsia.ir import Call, IRModule, post_order
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType
from intarsia.runtime.cuda.cuda_kernel import CudaKernel, opened_gpu
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import CompileError, ExecutionError, MissingToolchainError, UsageError
from intarsia.toolchain.registered import availability_on, cpu_toolchains, targets
from intarsia.toolchain.tensorrt.toolchain import TensorRt

TARGET = "cuda -toolchain=tensorrt"
X = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
TEXT = "def @main(%x: Tensor[(4, 4), float32]) { %0 = MatMul(%x, %x); (Relu(%0), %x) }"
MIXED = """
def @main(%x: Tensor[(4, 4), float32] @device(cpu:0)) -> Tensor[(4, 4), float32] {
  %0 = intarsia::device_copy(%x) @device(cuda:0, target="cuda -toolchain=native");
  %1 = Tanh(%0) @device(cuda:0, target="cuda -toolchain=native");
  %2 = MatMul(%1, %1) @device(cuda:0, target="cuda -toolchain=tensorrt");
  %3 = intarsia::device_copy(%2) @device(cpu:0);
  Neg(%3) @device(cpu:0)
}
"""


def typed(text: str) -> IRModule:
    return InferType()(parse_module(text))


@pytest.fixture(autouse=True)
def _fake_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt)
    fake_tensorrt.log.clear()
    with machine_with_gpus(), TOOLCHAINS.holding("tensorrt", TensorRt):
        yield


def test_a_program_is_an_engine_that_is_strongly_typed_and_without_tf32() -> None:
    with ia.build(typed(TEXT), TARGET) as exe:
        assert fake_tensorrt.log == ["without TF32", "built with flags 2"]
        for factor in (1, 2):
            product, same = exe(factor * X)
            np.testing.assert_allclose(product, np.maximum(factor * X @ (factor * X), 0), rtol=1e-5)
            np.testing.assert_array_equal(same, factor * X)
        np.testing.assert_array_equal(exe.clone()(X)[1], X)


def test_engines_and_native_kernels_share_the_memory_of_a_gpu() -> None:
    with ia.build(typed(MIXED)) as exe:
        np.testing.assert_allclose(exe(X), -(np.tanh(X) @ np.tanh(X)), rtol=1e-4, atol=1e-5)


def test_an_engine_is_saved_and_built_anew_where_it_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ia.build(typed(TEXT), TARGET) as exe:
        exe.save(tmp_path / "program")
    fake_tensorrt.log.clear()
    with ia.load(tmp_path / "program") as loaded:
        np.testing.assert_array_equal(loaded(X)[1], X)
    assert fake_tensorrt.log == []
    monkeypatch.setattr(fake_tensorrt.Runtime, "deserialize_cuda_engine", refuse_once())
    with ia.load(tmp_path / "program") as loaded:
        np.testing.assert_array_equal(loaded(X)[1], X)
    assert "built with flags 2" in fake_tensorrt.log


def refuse_once() -> object:
    """The loader of engines, which refuses the first."""
    load, count = fake_tensorrt.Runtime.deserialize_cuda_engine, iter(range(100))

    def deserialize(self: fake_tensorrt.Runtime, engine: bytes) -> fake_tensorrt.Engine | None:
        return load(self, engine) if next(count) else None

    return deserialize


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def @main(%x: Tensor[(4, 4), float32]) { Det(%x) }", "no importer for Det"),
        ('def @main(%x: Tensor[("n", 4), float32]) { Exp(%x) }', "'x' is known at run time only"),
        ("def @main(%x: Tensor[(2,), string]) { StringNormalizer(%x) }", "'x' is no array of numbers"),
    ],
)
def test_what_it_refuses(text: str, problem: str) -> None:
    with pytest.raises(CompileError, match="tensorrt cannot compile this: ") as caught:
        ia.build(typed(text), TARGET)
    assert problem in caught.value.problem


def test_buffers_that_do_not_fit() -> None:
    exe = ia.build(typed(TEXT), TARGET)
    (kernel,) = exe.kernels
    assert isinstance(kernel, CudaKernel)
    gpu = opened_gpu()
    with pytest.raises(ExecutionError, match=r" is float32\[3\]; expected float32\[4, 4\]"):
        kernel.run_on_gpu(gpu, [gpu.put(X[0, :3])], [None] * 2)
    exe.close()
    with pytest.raises(UsageError, match="the kernel is closed"):
        kernel.run_on_gpu(gpu, [gpu.put(X)], [None] * 2)


def test_it_is_for_gpus_only() -> None:
    assert "tensorrt" not in cpu_toolchains()
    assert "tensorrt" not in {target.toolchain for target in targets()}
    assert "GPUs only" in str(availability_on("tensorrt", "cpu"))
    assert "10.9.0" in str(availability_on("tensorrt", "cuda"))
    with pytest.raises(MissingToolchainError, match=r"is not usable on cpu here: .*GPUs only"):
        ia.build(typed(TEXT), "cpu -toolchain=tensorrt")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    assert "the package tensorrt is not installed" in str(availability_on("tensorrt", "cuda"))
    with pytest.raises(MissingToolchainError) as caught:
        ia.build(typed(TEXT), TARGET)
    assert caught.value.help == "pip install 'intarsia[tensorrt]'"


def test_operators_on_numbers_are_offered() -> None:
    assert TensorRt().supports(only_call("def @main(%x: Tensor[(4, 4), float32]) { MatMul(%x, %x) }"))
    assert not TensorRt().supports(only_call("def @main(%x: Tensor[(2,), string]) { StringNormalizer(%x) }"))


def only_call(text: str) -> Call:
    (call,) = (expr for expr in post_order(typed(text)["main"]) if isinstance(expr, Call))
    return call
