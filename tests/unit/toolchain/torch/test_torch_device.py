"""Devices of torch: their logic on the host's memory, and CUDA itself where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.fake_kernels import fake

from intarsia.build import build
from intarsia.ir.parser import parse_module
from intarsia.passes.infer_type import InferType
from intarsia.runtime.devices.core_groups import CoreGroup
from intarsia.runtime.devices.device import DEVICES
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.support.errors import ExecutionError, MissingToolchainError

pytest.importorskip("torch", reason="torch is an extra: pip install 'intarsia[torch]'")

import torch

from intarsia.toolchain.torch import kernel as torch_kernel
from intarsia.toolchain.torch.device import CudaDevice, TorchDevice
from intarsia.toolchain.torch.toolchain import Torch

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
TEXT = """
def @main(%x: Tensor[(3, 4), float32] @device(cpu:0)) -> (Tensor[(3, 4), float32], Tensor[(3, 4), float32]) {
  %0 = intarsia::device_copy(%x) @device(cuda:0);
  %1 = Relu(%0) @device(cuda:0);
  %2 = Mul(%1, %1) @device(cuda:0);
  %3 = intarsia::device_copy(%2) @device(cpu:0);
  %4 = Neg(%x) @device(cpu:0);
  (Add(%3, %4) @device(cpu:0), %2)
}
"""


class OnHost(TorchDevice):
    """A device of torch whose tensors are in the host's memory."""

    def __init__(self, name: DeviceName, cores: CoreGroup) -> None:
        super().__init__(name, torch.device("cpu"))


@pytest.fixture
def _host_as_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch_kernel, "place_of", lambda target: torch.device("cpu"))
    with DEVICES.holding("cuda", OnHost), TOOLCHAINS.holding("torch", Torch):
        yield


def program() -> Executable:
    return build(InferType()(parse_module(TEXT)))


def check(exe: Executable) -> None:
    positive = np.maximum(X, 0)
    assert exe.plan.devices == ("cpu:0", "cuda:0")
    assert [kernel.source.target for kernel in exe.kernels if kernel.source.toolchain == "torch"] == [
        "cuda -toolchain=torch"
    ] * 2
    for _ in range(2):
        total, square = exe(X)
        np.testing.assert_array_equal(total, positive * positive - X)
        np.testing.assert_array_equal(square, positive * positive)
    buffers = [np.empty_like(X), np.empty_like(X)]
    exe.run_into([X], buffers)
    np.testing.assert_array_equal(buffers[1], positive * positive)


@pytest.mark.usefixtures("_host_as_cuda")
def test_a_program_on_the_cpu_and_torch() -> None:
    with program() as exe:
        check(exe)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
def test_a_program_on_the_cpu_and_cuda() -> None:
    with TOOLCHAINS.holding("torch", Torch), DEVICES.holding("cuda", CudaDevice), program() as exe:
        check(exe)
        events = {(event.name, event.device) for event in exe.trace(X).events}
    assert ("copy from cpu:0", "cuda:0") in events


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_device() -> None:
    with pytest.raises(MissingToolchainError, match="cuda:0 is not usable here: torch finds 0 CUDA devices"):
        CudaDevice(DeviceName("cuda", 0), ())


def test_what_a_device_refuses() -> None:
    device = OnHost(DeviceName("cuda", 3), ())
    buffer = device.put(X)
    other: Any = X
    with pytest.raises(ExecutionError, match="cuda:3 is given a kernel of fake, expected one of torch"):
        device.run(NamedKernel(fake("double"), "double"), [buffer], [None])
    with pytest.raises(ExecutionError, match="which is not in its memory"):
        device.run(NamedKernel(fake("double"), "double"), [other], [None])
    with pytest.raises(ExecutionError, match="cuda:3 is given list, expected an array of numbers"):
        device.put([X])
    with pytest.raises(ExecutionError, match=r"a copy between devices is torch.float32\[3, 4\], expected"):
        device.receive(device, buffer, device.put(X[:2]))
    device.close()


def test_buffers_lie_in_a_block() -> None:
    device = OnHost(DeviceName("cuda", 0), ())
    block = device.allocate(256)
    one, other = (device.view(block, offset, (3, 4), np.dtype(np.float32)) for offset in (0, 64))
    assert device.receive(device, device.put(X), one) is one
    assert device.receive(device, one, other) is other
    np.testing.assert_array_equal(device.get(other), X)
    assert device.view(block, 128, (0, 2), np.dtype(np.int64)).shape == (0, 2)
    device.close()
