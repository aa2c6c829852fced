"""Kernels of torch on GPUs: on the memory of a fake one, reached by tensors of the CPU, and on a real one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext

import numpy as np
import pytest
from tests.gpu_on_cpu.fake_gpu import finish_work
from tests.gpu_on_cpu.fake_machine import machine_with_gpus

from intarsia.build import build
from intarsia.ir.parser import parse_module
from intarsia.passes.infer_type import InferType
from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_kernel import CudaKernel, opened_gpu
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import ExecutionError, MissingToolchainError
from intarsia.toolchain.registered import availability_on

pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")

import torch

from intarsia.toolchain.torch import cuda_memory
from intarsia.toolchain.torch import kernel as torch_kernel
from intarsia.toolchain.torch.rule import Tensor
from intarsia.toolchain.torch.toolchain import Torch
from intarsia.toolchain.torch.types import torch_dtype_of

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
TARGET = "cuda -toolchain=torch"
TEXT = """
def @main(%x: Tensor[(3, 4), float32] @device(cpu:0)) -> (Tensor[(3, 4), float32], Tensor[(3, 4), float32]) {
  %0 = intarsia::device_copy(%x) @device(cuda:0, target="cuda -toolchain=torch");
  %1 = Relu(%0) @device(cuda:0, target="cuda -toolchain=torch");
  %2 = Mul(%1, %1) @device(cuda:0, target="cuda -toolchain=native");
  %3 = intarsia::device_copy(%2) @device(cpu:0);
  %4 = Neg(%x) @device(cpu:0);
  (Add(%3, %4) @device(cpu:0), %2)
}
"""
PRODUCT = "def @main(%x: Tensor[(3, 4), float32]) { Relu(MatMul(%x, Transpose(%x, perm=[1, 0]))) }"


def tensor_on_host(buffer: CudaBuffer, number: int) -> Tensor:
    """A tensor of the CPU over the memory of a fake GPU."""
    assert number == 0
    finish_work()  # torch computes at once what it would put in the stream of a GPU
    if not buffer.nbytes:
        return torch.zeros(buffer.shape, dtype=torch_dtype_of(buffer.dtype))
    memory = (ctypes.c_char * buffer.nbytes).from_address(buffer.address)
    return torch.frombuffer(memory, dtype=torch_dtype_of(buffer.dtype)).reshape(buffer.shape)


@pytest.fixture
def _fake_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch_kernel, "place_of", lambda target: torch.device("cpu"))
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(cuda_memory, "tensor_over", tensor_on_host)
    monkeypatch.setattr(cuda_memory, "on_stream", lambda gpu: nullcontext())
    with machine_with_gpus(), TOOLCHAINS.holding("torch", Torch):
        yield


def check(exe: Executable) -> None:
    positive = np.maximum(X, 0)
    assert exe.plan.devices == ("cpu:0", "cuda:0")
    assert {kernel.source.target for kernel in exe.kernels if kernel.source.target.startswith("cuda")} == {
        "cuda -toolchain=native",
        TARGET,
    }
    for _ in range(2):
        total, square = exe(X)
        np.testing.assert_array_equal(total, positive * positive - X)
        np.testing.assert_array_equal(square, positive * positive)
    buffers = [np.empty_like(X), np.empty_like(X)]
    exe.run_into([X], buffers)
    np.testing.assert_array_equal(buffers[1], positive * positive)


@pytest.mark.usefixtures("_fake_gpu")
def test_kernels_of_torch_and_native_share_the_memory_of_a_gpu() -> None:
    with build(InferType()(parse_module(TEXT))) as exe:
        check(exe)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
def test_a_program_on_the_cpu_and_cuda() -> None:
    with build(InferType()(parse_module(TEXT))) as exe:
        check(exe)
        events = {(event.name, event.device) for event in exe.trace(X).events}
    assert ("copy from cpu:0", "cuda:0") in events


@pytest.mark.usefixtures("_fake_gpu")
@pytest.mark.parametrize("options", ["", pytest.param(" -compiled=true", marks=pytest.mark.slow)])
def test_a_kernel_takes_arrays_of_the_host(options: str) -> None:
    with build(InferType()(parse_module(PRODUCT)), TARGET + options) as exe:
        np.testing.assert_allclose(exe(X), np.maximum(X @ X.T, 0))
        np.testing.assert_allclose(exe.clone()(2 * X), 4 * np.maximum(X @ X.T, 0))


@pytest.mark.usefixtures("_fake_gpu")
def test_a_result_of_another_form_is_refused() -> None:
    with build(InferType()(parse_module(PRODUCT)), TARGET) as exe:
        (kernel,) = exe.kernels
        assert isinstance(kernel, CudaKernel)
        gpu = opened_gpu()
        with pytest.raises(ExecutionError, match=r"torch computed float32\[3, 3\], expected float32\[3, 4\]"):
            kernel.run_on_gpu(gpu, [gpu.put(X)], [gpu.put(X)])


def test_a_buffer_is_described_as_an_array_of_cuda() -> None:
    with machine_with_gpus():
        buffer = opened_gpu().put(X)
        described = cuda_memory.array_interface(buffer)
        assert described == {
            "shape": (3, 4),
            "typestr": "<f4",
            "data": (buffer.address, False),
            "strides": None,
            "version": 3,
        }
        assert cuda_memory.array_interface(opened_gpu().put(X[:0]))["data"] == (0, False)


def test_the_first_thread_that_leaves_does_not_end_the_precision_of_others() -> None:
    before = torch.backends.cudnn.allow_tf32
    first, second = cuda_memory.full_precision(), cuda_memory.full_precision()
    with ExitStack() as later:
        with first:
            later.enter_context(second)
        assert not torch.backends.cudnn.allow_tf32
    assert torch.backends.cudnn.allow_tf32 == before


def test_float32_is_multiplied_in_full_precision() -> None:
    before = torch.backends.cudnn.allow_tf32
    with cuda_memory.full_precision():
        assert not torch.backends.cudnn.allow_tf32
        assert not torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cudnn.allow_tf32 == before


def without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setenv("INTARSIA_LIBCUDA", "libnothing.so.1")


def without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)


@pytest.mark.parametrize(
    ("lack", "problem"),
    [(without_a_driver, "there is no NVIDIA driver here"), (without_cuda, "was built without CUDA")],
)
def test_what_is_missing_is_said(
    lack: Callable[[pytest.MonkeyPatch], None], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack(monkeypatch)
    with TOOLCHAINS.holding("torch", Torch):
        assert problem in str(availability_on("torch", "cuda"))
        with pytest.raises(MissingToolchainError, match=f"'torch' is not usable on cuda here: .*{problem}"):
            build(InferType()(parse_module(PRODUCT)), TARGET)
