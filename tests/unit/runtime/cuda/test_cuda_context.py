"""The CUDA driver by ctypes, on a fake one: memory, code, launches, times, and every error."""

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from tests.gpu_on_cpu.fake_gpu import fake_context, fake_driver, fake_image, fake_library
from tests.tir_checks import parsed
from tests.unit.ir.test_kernel_verify import REVERSED_ROWS

from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.driver import CudaDriver
from intarsia.runtime.cuda.memory_pool import MemoryPool
from intarsia.support.errors import ExecutionError, MissingToolchainError


@pytest.fixture
def context() -> Iterator[CudaContext]:
    opened = fake_context()
    yield opened
    opened.close()


def used_bytes() -> int:
    function = ctypes.CDLL(str(fake_library())).fake_used_bytes
    function.restype = ctypes.c_size_t
    return int(function())


def test_a_missing_driver_is_said_clearly() -> None:
    with pytest.raises(MissingToolchainError, match="there is no NVIDIA driver here: libnothing") as caught:
        CudaDriver.load("libnothing.so.1")
    assert caught.value.help == "run this on a machine with an NVIDIA GPU and its driver"


def test_a_driver_without_a_gpu_is_said_clearly() -> None:
    count = ctypes.c_int.in_dll(ctypes.CDLL(str(fake_library())), "fake_device_count")
    count.value = 0
    try:
        with pytest.raises(MissingToolchainError, match="the NVIDIA driver finds no GPU: it lists no GPU"):
            fake_driver()
    finally:
        count.value = 1


def test_a_gpu_has_a_name_and_a_capability(context: CudaContext) -> None:
    assert (context.name, context.capability, context.multiprocessors) == ("Fake GPU 0", (8, 0), 4)
    with pytest.raises(ExecutionError, match="there is no GPU 3; expected less than 1"):
        CudaContext.open(context.driver, 3)


def test_arrays_go_there_and_back(context: CudaContext) -> None:
    array = np.arange(10, dtype=np.float32)
    first, second = context.pool.allocate(array.nbytes), context.pool.allocate(array.nbytes)
    context.upload(first, array)
    context.copy(second, first, array.nbytes)
    result = np.zeros_like(array)
    context.download(result, second)
    np.testing.assert_array_equal(result, array)


def test_a_kernel_runs_on_the_memory_of_the_gpu(context: CudaContext) -> None:
    emitted = emit_kernels(parsed(REVERSED_ROWS), "k", "sm_80")
    module = context.load(fake_image(emitted.text, emitted.launches), ["k_0"])
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    addresses = [context.pool.allocate(x.nbytes) for _ in range(2)]
    context.upload(addresses[0], x)
    seconds = context.time(lambda: context.launch(module.functions["k_0"], 4, 8, addresses))
    y = np.zeros_like(x)
    context.download(y, addresses[1])
    np.testing.assert_array_equal(y, x[:, ::-1])
    assert seconds > 0
    context.unload(module)


def test_code_that_the_driver_refuses_is_an_error_with_its_log(context: CudaContext) -> None:
    with pytest.raises(
        ExecutionError, match="cuModuleLoadDataEx returned CUDA_ERROR_INVALID_IMAGE"
    ) as caught:
        context.load(b"/nowhere/code.so\0", ["k_0"])
    assert any("fake ptxas: /nowhere/code.so" in note for note in caught.value.__notes__)


def test_an_address_that_is_not_the_gpus_is_an_error(context: CudaContext) -> None:
    with pytest.raises(ExecutionError, match="cuMemcpyHtoDAsync_v2 returned CUDA_ERROR_INVALID_VALUE"):
        context.upload(64, np.zeros(4, np.float32))


def test_blocks_are_used_again_and_given_back_at_the_end() -> None:
    before = used_bytes()
    opened = fake_context()
    first = opened.pool.allocate(1000)
    opened.pool.free(first)
    assert opened.pool.allocate(900) == first
    opened.pool.free(first)
    opened.close()
    assert used_bytes() == before


def test_memory_that_is_missing_is_a_memory_error(
    context: CudaContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUDA_BYTES", str(used_bytes() + 4096))
    with pytest.raises(MemoryError, match="cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"):
        context.pool.allocate(8192)


def test_free_blocks_make_room_before_an_allocation_fails() -> None:
    sizes: dict[int, int] = {}

    def allocate(size: int) -> int:
        if sum(sizes.values()) + size > 2048:
            raise MemoryError
        address = 1024 * (len(sizes) + 1)
        sizes[address] = size
        return address

    def free(address: int) -> None:
        del sizes[address]

    pool = MemoryPool(allocate, free)
    pool.free(pool.allocate(1024))
    assert pool.allocate(2048)
    assert list(sizes.values()) == [2048]
