"""GPUs as devices of programs, on a fake driver whose work is done when something waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.device_plans import device_plan
from tests.fake_kernels import FakeKernel, fake
from tests.gpu_on_cpu.fake_gpu import fake_image, forget_faults, used_bytes
from tests.gpu_on_cpu.fake_machine import machine_with_gpus, machine_without_driver
from tests.tir_checks import parsed

from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.cuda_device import CudaDevice
from intarsia.runtime.cuda.driver import GpuLostError
from intarsia.runtime.devices.device import Device
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.devices.open_devices import open_devices
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Kernel
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.plan import Copy, Invoke, PlanBlock, RunKernel, Step
from intarsia.support.errors import ExecutionError, MissingToolchainError

SIZE = 8
VECTOR = np.arange(SIZE, dtype=np.float32)
DOUBLED = """
def prim @f(x: Buffer[(8,), float32], y: Buffer[(8,), float32]) {
  for block b in 2 { for thread t in 4 { y[b * 4 + t] = x[b * 4 + t] * 2.0f32; } }
}
"""


class DoubleOnGpu(FakeKernel):
    """Doubles a vector on a GPU."""

    def __init__(self) -> None:
        super().__init__(fake("double").source)
        emitted = emit_kernels(parsed(DOUBLED), "k", "sm_80")
        self.image = fake_image(emitted.text, emitted.launches)

    def run_on_gpu(
        self, gpu: CudaContext, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        module = gpu.load(self.image, ["k_0"])
        result = outputs[0] or gpu.new_buffer((SIZE,), np.dtype(np.float32))
        gpu.launch(module.functions["k_0"], 2, 4, [inputs[0].address, result.address])
        return [result]


@pytest.fixture(autouse=True)
def _fake_cuda() -> Iterator[None]:
    with machine_with_gpus(2):
        yield


def opened(*names: str) -> tuple[Device, ...]:
    return open_devices(names, [None] * len(names))


@pytest.mark.parametrize(
    ("origin", "target"),
    [("cpu:0", "cuda:0"), ("mock:0", "cuda:1"), ("cuda:0", "cpu:0"), ("cuda:1", "cuda:0")],
)
def test_a_value_goes_there_and_back(origin: str, target: str) -> None:
    first, second = opened(origin, target)
    value, into = first.put(VECTOR), second.view(second.allocate(64), 32, (SIZE,), VECTOR.dtype)
    first.synchronize()
    there = second.receive(first, value, into)
    second.synchronize()
    back = first.receive(second, there, None)
    first.synchronize()
    np.testing.assert_array_equal(np.asarray(first.get(back)), VECTOR)
    given = np.empty_like(VECTOR)
    assert second.get(there, given) is given
    np.testing.assert_array_equal(given, VECTOR)
    first.close()
    second.close()


def test_kernels_write_into_buffers_or_new_ones() -> None:
    (device,) = opened("cuda:0")
    double = NamedKernel(DoubleOnGpu(), "double")
    into = device.view(device.allocate(64), 0, (SIZE,), VECTOR.dtype)
    assert device.run(double, [device.put(VECTOR)], [into])[0] is into
    (new,) = device.run(double, [into], [None])
    np.testing.assert_array_equal(device.get(new), VECTOR * 4)
    device.close()


def program() -> Executable:
    """Doubles its input on both GPUs, and adds the results on the CPU."""
    steps: list[Step] = [
        *(Copy(0, 1, 1), Copy(0, 2, 2), RunKernel(0, (1,), (3,), 1), RunKernel(1, (2,), (4,), 2)),
        *(Copy(3, 5, 0), Copy(4, 6, 0), RunKernel(2, (5, 6), (7,), 0)),
    ]
    plan = device_plan(["cpu:0", "cuda:0", "cuda:1"], [0, 1, 2, 1, 2, 0, 0, 0], steps, [7], size=SIZE)
    kernels: list[Kernel] = [DoubleOnGpu(), DoubleOnGpu(), fake("add")]
    return Executable(plan, kernels)


def test_a_program_runs_on_the_cpu_and_two_gpus() -> None:
    before = used_bytes()
    with program() as exe:
        for factor in (1, 3):
            np.testing.assert_array_equal(exe(VECTOR * factor), VECTOR * factor * 4)
        events = {(event.name, event.device) for event in exe.trace(VECTOR).events}
    assert {("copy from cpu:0", "cuda:0"), ("copy from cuda:1", "cpu:0")} <= events
    assert used_bytes() == before


def program_with_a_call() -> Executable:
    """Copies a value to another GPU, and then writes another one of the same size where the value was."""
    steps: tuple[Step, ...] = (
        *(Copy(0, 1, 1), RunKernel(0, (1,), (2,), 1), Copy(2, 3, 2)),
        *(Copy(0, 4, 1), RunKernel(1, (4,), (5,), 1), RunKernel(1, (5,), (6,), 1)),
        *(Copy(3, 7, 0), Copy(6, 8, 0), RunKernel(2, (7, 8), (9,), 0)),
    )
    called = PlanBlock((0,), (), steps, (9,), 10, (0, 1, 1, 2, 1, 1, 1, 0, 0, 0))
    names = ["cpu:0", "cuda:0", "cuda:1"]
    plan = device_plan(names, [0, 0], [Invoke("f", (0,), (1,))], [1], size=SIZE, blocks={"f": called})
    return Executable(plan, [DoubleOnGpu(), DoubleOnGpu(), fake("add")])


SEEDS = (0, 1, 2, 3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [program, program_with_a_call])
def test_memory_is_used_again_behind_copies_to_other_gpus(make: Callable[[], Executable], seed: int) -> None:
    with machine_with_gpus(2, seed), make() as exe:
        for factor in range(1, 6):
            times = 4 if make is program else 6
            np.testing.assert_array_equal(exe(VECTOR * factor), VECTOR * factor * times)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_missing_wait_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with machine_with_gpus(2, seed), program_with_a_call() as exe:
        monkeypatch.setattr(CudaDevice, "synchronize", lambda self: None)
        results = [exe(VECTOR * factor) for factor in range(1, 6)]
    right = [np.array_equal(result, VECTOR * factor * 6) for factor, result in enumerate(results, 1)]
    assert not all(right)


def test_a_kernel_that_faults_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    exe = program()
    monkeypatch.setenv("FAKE_CUDA_FAULT_BLOCKS", "2")
    try:
        with pytest.raises(GpuLostError, match=r"is lost to this process: .*CUDA_ERROR_ILLEGAL_ADDRESS"):
            exe(VECTOR)
        exe.close()
    finally:
        forget_faults()


def test_memory_that_is_missing_is_an_error_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_BYTES", "100")
    with pytest.raises(ExecutionError, match="intermediate values on cuda:0"):
        program()


def a_stranger(device: CudaDevice) -> None:
    device.get(CudaBuffer(0, 0, (1,), VECTOR.dtype, device.put(VECTOR).block))


def an_array(device: CudaDevice) -> None:
    given: Any = VECTOR
    device.run(NamedKernel(DoubleOnGpu(), "double"), [given], [None])


def a_kernel_of_the_cpu(device: CudaDevice) -> None:
    device.run(NamedKernel(fake("double"), "double"), [device.put(VECTOR)], [None])


def a_list(device: CudaDevice) -> None:
    device.put([VECTOR])


def strings(device: CudaDevice) -> None:
    device.put(np.array(["a"], np.object_))


def another_shape(device: CudaDevice) -> None:
    device.receive(device, device.put(VECTOR), device.put(VECTOR[:3]))


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        (a_stranger, r"cuda:1 is given a buffer of a GPU, float32\[1\], which is not in its memory"),
        (an_array, "cuda:1 is given a ndarray, which is not in its memory"),
        (
            a_kernel_of_the_cpu,
            'given a kernel of fake for "cpu -toolchain=fake", expected one for GPUs',
        ),
        (a_list, "a GPU is given list, expected an array of numbers"),
        (strings, "a GPU is given object, expected an array of numbers"),
        (another_shape, r"a copy between devices is float32\[8\], expected float32\[3\]"),
    ],
)
def test_what_a_gpu_refuses(use: Callable[[CudaDevice], None], problem: str) -> None:
    device = CudaDevice(DeviceName("cuda", 1), ())
    with pytest.raises(ExecutionError, match=problem):
        use(device)
    device.close()


def test_without_a_gpu_of_that_number() -> None:
    with pytest.raises(MissingToolchainError, match=r"cuda:2 is not usable here: .* lists 2 GPUs"):
        CudaDevice(DeviceName("cuda", 2), ())


def test_without_a_driver() -> None:
    message = "cuda:0 is not usable here: there is no NVIDIA"
    with machine_without_driver(), pytest.raises(MissingToolchainError, match=message):
        opened("cpu:0", "cuda:0")
