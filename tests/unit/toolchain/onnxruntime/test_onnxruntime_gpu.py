"""Onnxruntime on GPUs: options of its providers, refusals, and kernels on the memory of a fake GPU.

The CPU's provider reaches that memory; what the GPU's compute is not tested here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.gpu_on_cpu.fake_machine import machine_with_gpus

import intarsia as ia
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType
from intarsia.runtime.cuda.cuda_kernel import CudaKernel, opened_gpu
from intarsia.support.errors import CompileError, ExecutionError, MissingToolchainError, UsageError
from intarsia.target import Target
from intarsia.toolchain.registered import availability_on

pytest.importorskip("onnxruntime", reason="onnxruntime is an extra: pip install 'intarsia[onnxruntime]'")

import onnxruntime

from intarsia.toolchain.onnxruntime import cuda_kernel, providers

GPU = Target("cuda -toolchain=onnxruntime")
X = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
TEXT = "def @main(%x: Tensor[(4, 4), float32]) { %0 = MatMul(%x, %x); (Relu(%0), %x, ArgMax(%0, axis=1)) }"
MIXED = """
def @main(%x: Tensor[(4, 4), float32] @device(cpu:0)) -> Tensor[(4, 4), float32] {
  %0 = intarsia::device_copy(%x) @device(cuda:0, target="cuda -toolchain=onnxruntime");
  %1 = MatMul(%0, %0) @device(cuda:0, target="cuda -toolchain=onnxruntime");
  %2 = Exp(%1) @device(cuda:0, target="cuda -toolchain=native");
  %3 = intarsia::device_copy(%2) @device(cpu:0);
  Neg(%3) @device(cpu:0)
}
"""


def typed(text: str) -> IRModule:
    return InferType()(parse_module(text))


@pytest.fixture
def _fake_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cpu = "CPUExecutionProvider"
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [cpu, providers.CUDA])
    monkeypatch.setattr(providers, "session_providers", lambda target, number: [cpu])
    monkeypatch.setattr(cuda_kernel, "MEMORY", "cpu")
    with machine_with_gpus():
        yield


def test_a_target_decides_on_the_providers() -> None:
    cuda = "CUDAExecutionProvider", {"device_id": "1", "use_tf32": "0"}
    assert providers.session_providers(Target("cpu -toolchain=onnxruntime"), 0) == ["CPUExecutionProvider"]
    assert providers.session_providers(GPU, 1) == [cuda]
    tensorrt = GPU.with_options(provider="tensorrt")
    assert providers.session_providers(tensorrt, 1) == [
        ("TensorrtExecutionProvider", {"device_id": "1"}),
        cuda,
    ]


@pytest.mark.usefixtures("_fake_gpu")
def test_a_program_runs_on_the_memory_of_a_gpu() -> None:
    reference = ia.build(typed(TEXT), "native")
    with ia.build(typed(TEXT), GPU) as exe:
        for factor in (1, 2):
            for result, right in zip(exe(factor * X), reference(factor * X), strict=True):
                np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)
        clone = exe.clone()
        np.testing.assert_allclose(clone(X)[0], reference(X)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("_fake_gpu")
def test_kernels_of_onnxruntime_and_native_share_the_memory_of_a_gpu() -> None:
    with ia.build(typed(MIXED)) as exe:
        targets = {kernel.source.target for kernel in exe.kernels}
        assert {str(GPU), "cuda -toolchain=native"} <= targets
        np.testing.assert_allclose(exe(X), -np.exp(X @ X), rtol=1e-4)


@pytest.mark.usefixtures("_fake_gpu")
def test_a_result_of_a_size_that_is_known_after_the_run() -> None:
    with ia.build(typed("def @main(%x: Tensor[(4, 4), float32]) { NonZero(%x) }"), GPU) as exe:
        np.testing.assert_array_equal(exe(np.eye(4, dtype=np.float32)), np.stack([np.arange(4)] * 2))


@pytest.mark.usefixtures("_fake_gpu")
def test_what_a_kernel_refuses() -> None:
    exe = ia.build(typed(TEXT), GPU)
    (kernel,) = exe.kernels
    assert isinstance(kernel, CudaKernel)
    gpu = opened_gpu()
    with pytest.raises(ExecutionError, match=r" is float32\[3\]; expected float32\[4, 4\]"):
        kernel.run_on_gpu(gpu, [gpu.put(X[0, :3])], [None] * 3)
    exe.close()
    with pytest.raises(UsageError, match="the kernel is closed"):
        kernel.run_on_gpu(gpu, [gpu.put(X)], [None] * 3)
    with pytest.raises(CompileError, match="is no array of numbers"):
        ia.build(typed("def @main(%x: Tensor[(2,), string]) { StringNormalizer(%x) }"), GPU)


def test_a_package_without_cuda_is_said() -> None:
    if providers.CUDA in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has CUDA")
    with machine_with_gpus():
        assert "has no CUDAExecutionProvider" in str(availability_on("onnxruntime", "cuda"))
        with pytest.raises(MissingToolchainError) as caught:
            ia.build(typed(TEXT), GPU)
    assert "'onnxruntime' is not usable on cuda here: the installed onnxruntime" in caught.value.problem
    assert "intarsia[onnxruntime-gpu]" in caught.value.help


@pytest.mark.usefixtures("_fake_gpu")
def test_a_package_without_tensorrt_is_said() -> None:
    with pytest.raises(MissingToolchainError, match="has no TensorrtExecutionProvider"):
        ia.build(typed(TEXT), GPU.with_options(provider="tensorrt"))


class Session:
    """A session that has dropped the provider of CUDA."""

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]


def test_a_provider_that_does_not_load_is_refused() -> None:
    session: Any = Session()
    with pytest.raises(CompileError, match="CUDAExecutionProvider did not load"):
        providers.refuse_fallback(session, GPU, 0)
    providers.refuse_fallback(session, Target("cpu -toolchain=onnxruntime"), 0)
