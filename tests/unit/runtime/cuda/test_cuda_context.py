"""The CUDA driver by ctypes, on a fake one: memory, code, launches, times, and every error."""

import gc
import os
import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from tests.gpu_on_cpu.fake_gpu import (
    fake_context,
    fake_driver,
    fake_image,
    fake_number,
    set_device_count,
    set_seed,
    used_bytes,
)
from tests.tir_checks import parsed
from tests.unit.ir.test_kernel_verify import REVERSED_ROWS

from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.runtime.cuda.cuda_clock import CudaClock
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.cuda_graph import CudaGraph
from intarsia.runtime.cuda.driver import CudaDriver
from intarsia.runtime.cuda.memory_pool import MemoryPool
from intarsia.runtime.cuda.staging import PIECE, PIECES, StagingRing
from intarsia.support.errors import ExecutionError, MissingToolchainError


@pytest.fixture
def context() -> Iterator[CudaContext]:
    set_seed(0)
    opened = fake_context()
    yield opened
    opened.close()


def test_a_missing_driver_is_said_clearly() -> None:
    with pytest.raises(MissingToolchainError, match="there is no NVIDIA driver here: libnothing") as caught:
        CudaDriver.load("libnothing.so.1")
    assert caught.value.help == "run this on a machine with an NVIDIA GPU and its driver"


def test_a_driver_without_a_gpu_is_said_clearly() -> None:
    set_device_count(0)
    try:
        with pytest.raises(MissingToolchainError, match="the NVIDIA driver finds no GPU: it lists no GPU"):
            fake_driver()
    finally:
        set_device_count(1)


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
    clock = CudaClock(context)
    seconds = clock.seconds(lambda: context.launch(module.functions["k_0"], 4, 8, addresses))
    y = np.zeros_like(x)
    context.download(y, addresses[1])
    np.testing.assert_array_equal(y, x[:, ::-1])
    assert seconds > 0
    clock.close()
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


def test_pinned_memory_is_allocated_whole_or_not_at_all(context: CudaContext) -> None:
    calls: list[str] = []

    def call(function: str, *arguments: object) -> None:
        calls.append(function)
        if calls.count("cuEventCreate") == PIECES:
            raise MemoryError
        context.call(function, *arguments)

    ring, array = StagingRing(call, context.stream), np.arange(PIECE, dtype=np.uint64)
    buffer = context.put(array)
    with pytest.raises(MemoryError):
        ring.download(np.empty_like(array), buffer.address)
    result = np.empty_like(array)
    calls.append("cuEventCreate")  # the next ones do not fail
    ring.download(result, buffer.address)
    np.testing.assert_array_equal(result, array)
    ring.close()


def test_code_and_pinned_memory_that_work_needs_stay(context: CudaContext) -> None:
    emitted = emit_kernels(parsed(REVERSED_ROWS), "k", "sm_80")
    module = context.load(fake_image(emitted.text, emitted.launches), ["k_0"])
    addresses = [context.pool.allocate(128) for _ in range(2)]
    context.launch(module.functions["k_0"], 4, 8, addresses)
    with pytest.raises(ExecutionError, match="cuModuleUnload returned FAKE_ERROR_IN_USE"):
        context.call("cuModuleUnload", module.handle)
    context.synchronize()
    context.unload(module)


@pytest.mark.parametrize("nbytes", [1, PIECE, PIECE + 1, PIECE * (PIECES + 2) + 12345])
def test_copies_of_any_size_go_through_pinned_memory(context: CudaContext, nbytes: int) -> None:
    before = fake_number("fake_pinned_bytes")
    rng = np.random.default_rng(nbytes)
    first, second = (rng.integers(0, 256, nbytes).astype(np.uint8) for _ in range(2))
    given = first.copy()
    buffer, other = context.put(given), context.put(second)
    given[:] = 0  # the array may change once `put` has returned
    np.testing.assert_array_equal(context.get(buffer), first)
    np.testing.assert_array_equal(context.get(other), second)
    assert fake_number("fake_pinned_bytes") - before == PIECE * PIECES


def test_memory_of_a_buffer_is_used_again_once_nothing_refers_to_it(context: CudaContext) -> None:
    buffer = context.put(np.zeros(300, np.float32))
    address = buffer.address
    assert context.new_buffer((300,), np.dtype(np.float32)).address != address
    del buffer
    gc.collect()
    addresses = {context.new_block(1200).address for _ in range(3)}
    assert address in addresses


def test_any_thread_may_use_a_gpu(context: CudaContext) -> None:
    found = []
    buffer = context.put(np.arange(5))
    thread = threading.Thread(target=lambda: found.append(context.get(buffer)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], np.arange(5))


def test_arrays_of_no_memory_order_and_of_no_dimension(context: CudaContext) -> None:
    transposed = np.arange(6.0).reshape(2, 3).T
    into = np.zeros((2, 3)).T
    assert context.get(context.put(transposed), into) is into
    np.testing.assert_array_equal(into, transposed)
    scalar = context.get(context.put(np.array(7)))
    assert scalar.shape == ()
    assert scalar == 7
    assert context.get(context.put(np.zeros((0, 3)))).shape == (0, 3)
    with pytest.raises(ExecutionError, match=r"a copy between devices is int64\[\], expected float32\[\]"):
        context.get(context.put(np.array(7)), np.array(0, np.float32))


def test_a_closed_gpu_leaves_no_memory_behind() -> None:
    before = used_bytes(), fake_number("fake_pinned_bytes"), fake_number("fake_modules")
    opened = fake_context()
    emitted = emit_kernels(parsed(REVERSED_ROWS), "k", "sm_80")
    opened.load(fake_image(emitted.text, emitted.launches), ["k_0"])
    buffer = opened.put(np.zeros(100))
    opened.close()
    opened.close()
    assert (used_bytes(), fake_number("fake_pinned_bytes"), fake_number("fake_modules")) == before
    del buffer  # its memory is gone already
    gc.collect()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_is_told_that_it_has_no_gpu(context: CudaContext) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            context.put(np.zeros(3))
        except ExecutionError as error:
            os.write(writer, error.problem.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        assert said.read() == "a forked process cannot use the GPU of its parent"


def test_a_clock_of_the_gpu_waits_for_what_was_started(context: CudaContext) -> None:
    clock = CudaClock(context)
    first, second = clock(), clock()
    assert 0 < first < second
    clock.close()


def test_recorded_work_is_done_at_each_launch(context: CudaContext) -> None:
    source, target = context.put(np.arange(4.0)), context.put(np.zeros(4))
    graph = CudaGraph.record(context, lambda: context.copy(target.address, source.address, source.nbytes))
    np.testing.assert_array_equal(context.get(target), np.zeros(4))
    context.upload(source.address, np.ones(4))
    graph.launch()
    np.testing.assert_array_equal(context.get(target), np.ones(4))
    graph.close()


def test_what_other_threads_start_meanwhile_is_not_recorded(context: CudaContext) -> None:
    source, target = context.put(np.arange(4.0)), context.put(np.zeros(4))
    copied: list[npt.NDArray[np.float64]] = []

    def copy_in_another_thread() -> None:
        context.upload(source.address, np.ones(4))
        copied.append(context.get(source))

    def work() -> None:
        thread = threading.Thread(target=copy_in_another_thread)
        thread.start()
        thread.join()
        context.copy(target.address, source.address, source.nbytes)

    graph = CudaGraph.record(context, work)
    np.testing.assert_array_equal(copied, [np.ones(4)])
    context.upload(source.address, np.full(4, 2.0))
    graph.launch()
    np.testing.assert_array_equal(context.get(target), np.full(4, 2.0))
    graph.close()


def test_what_waits_for_a_gpu_meanwhile_does_not_end_the_recording(context: CudaContext) -> None:
    """As garbage does that is collected then: a program that is closed waits for its kernels."""
    source, target = context.put(np.arange(4.0)), context.put(np.zeros(4))

    def work() -> None:
        context.synchronize()
        context.copy(target.address, source.address, source.nbytes)

    graph = CudaGraph.record(context, work)
    np.testing.assert_array_equal(context.get(target), np.zeros(4))
    graph.launch()
    np.testing.assert_array_equal(context.get(target), np.arange(4.0))
    graph.close()


def test_work_that_cannot_be_recorded_leaves_the_stream_as_it_was(context: CudaContext) -> None:
    before = fake_number("fake_graphs")
    with pytest.raises(ExecutionError, match="CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        CudaGraph.record(context, lambda: context.call("cuStreamSynchronize", context.stream))
    assert fake_number("fake_graphs") == before
    np.testing.assert_array_equal(context.get(context.put(np.ones(3))), np.ones(3))
