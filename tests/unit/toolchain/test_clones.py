"""Clones and pools over every toolchain: results, memory, threads, and the interpreter lock."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.forked_children import PATIENCE_S, forked
from tests.onnx_models import model_of
from tests.partitioned_programs import SIZE, unpartitioned
from tests.process_threads import task_names

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.passes import partition_for, partition_whole
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.runtime.pool import Pool
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

TOOLCHAINS = sorted(toolchain.name for toolchain in usable_toolchains())
WAYS = [*TOOLCHAINS, "mixed", "branches"]
MIXED = """g (float[64,64] x) => (float[64,64] y) {
  a = MatMul (x, x) b = Softmax (a) c = NonZero (b) d = Cast <to = 1> (c)
  e = ReduceSum <keepdims = 0> (d) y = Add (b, e)
}"""
BRANCHES = """g (float[64,64] x) => (float[64,64] y) {
  zero = Constant <value = float {0.0}> () sum = ReduceSum <keepdims = 0> (x) c = Greater (sum, zero)
  y = If (c) <
    then_branch = t () => (float[64,64] a) { q = MatMul (x, x) a = Softmax (q) },
    else_branch = e () => (float[64,64] b) { r = MatMul (x, x) b = Relu (r) }
  >
}"""


def executable_of(way: str, threads: int = 1) -> Executable:
    """A program on one toolchain, or one of several kernels."""
    if way in TOOLCHAINS:
        target = Target.for_toolchain(way, threads=threads)
        return build(partition_whole(unpartitioned(), target))
    targets = [str(Target.for_toolchain(name, threads=threads)) for name in ("native", "onnxruntime")]
    return build(partition_for(from_onnx(model_of(MIXED if way == "mixed" else BRANCHES)), *targets))


def is_close(exe: Executable, x: Array, expected: Array) -> bool:
    return np.allclose(exe(x), expected, 1e-4, 1e-5)


def random_inputs(count: int) -> list[Array]:
    rng = np.random.default_rng(5)
    return [rng.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_eight_clients_get_the_bits_of_serial_calls(way: str, threads: int) -> None:
    given = random_inputs(4)
    with executable_of(way, threads) as exe, Pool(exe, streams=3, threads=threads) as pool:
        expected = [exe(x) for x in given]

        def call(client: int) -> bool:
            order = [(client + number) % len(given) for number in range(12)]
            return all(np.array_equal(pool(given[index]), expected[index]) for index in order)

        with ThreadPoolExecutor(8) as clients:
            assert all(clients.map(call, range(8)))
        assert all(np.array_equal(exe(x), y) for x, y in zip(given, expected, strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_a_clone_outlives_the_executable_and_is_closed_by_itself(way: str) -> None:
    (x,), exe = random_inputs(1), executable_of(way)
    expected = exe(x)
    sharing, separate = exe.clone(), exe.clone(threads=1)
    sharing.close()
    np.testing.assert_array_equal(exe(x), expected)
    exe.close()
    np.testing.assert_array_equal(separate(x), expected)
    separate.close()
    with pytest.raises(UsageError, match="the executable is closed"):
        separate(x)


@pytest.mark.parametrize("way", WAYS)
def test_clones_run_in_forked_children(way: str) -> None:
    (x,), exe = random_inputs(1), executable_of(way)
    expected = exe(x)
    for clone in (exe.clone(), exe.clone(threads=1)):
        is_right = partial(is_close, clone, x, expected)
        assert forked(is_right) == 0
    assert forked(lambda: is_close(exe.clone(), x, expected)) == 0


@pytest.mark.parametrize("way", ["native", "mixed"])
def test_a_saved_clone_has_its_threads(way: str, tmp_path: Any) -> None:
    (x,), exe = random_inputs(1), executable_of(way)
    expected = exe(x)
    exe.clone(threads=2).save(tmp_path / "a.intarsia")
    loaded = load(tmp_path / "a.intarsia")
    assert all(Target(kernel.source.target).option("threads") == 2 for kernel in loaded.kernels)
    np.testing.assert_allclose(loaded(x), expected, rtol=1e-5)


@pytest.mark.skipif("native" not in TOOLCHAINS, reason="native is not usable")
def test_native_clones_share_code_and_weights() -> None:
    exe = executable_of("native")
    (kernel,), (clone,) = exe.kernels, exe.clone(threads=2).kernels
    assert {function.address for function in kernel._functions} == {  # type: ignore[attr-defined]
        function.address
        for function in clone._functions  # type: ignore[attr-defined]
    }
    pairs = zip(kernel._region.constants, clone._region.constants, strict=True)  # type: ignore[attr-defined]
    assert all(one.array is other.array for one, other in pairs)


@pytest.mark.skipif("openvino" not in TOOLCHAINS, reason="openvino is not installed")
def test_openvino_has_a_stream_for_each_clone() -> None:
    kernels = [clone.kernels[0] for clone in executable_of("openvino").clones(2, threads=1)]
    assert kernels[0]._compiled is kernels[1]._compiled  # type: ignore[attr-defined]
    assert int(kernels[0]._compiled.get_property("NUM_STREAMS")) == min(  # type: ignore[attr-defined]
        2, len(os.sched_getaffinity(0))
    )


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("way", WAYS)
def test_pools_leave_no_threads_and_descriptors(way: str) -> None:
    (x,), exe = random_inputs(1), executable_of(way)

    def use_pool() -> None:
        with Pool(exe, streams=2, threads=1) as pool:
            pool(x)

    use_pool()  # engines start threads of the process, which stay
    gc.collect()
    threads, descriptors = len(task_names()), count_descriptors()
    for _ in range(5):
        use_pool()
    gc.collect()
    end = time.monotonic() + PATIENCE_S  # a thread that was joined has yet to leave the system
    while len(task_names()) > threads and time.monotonic() < end:
        time.sleep(0.01)
    assert len(task_names()) <= threads
    assert count_descriptors() <= descriptors


# With such an interval a thread keeps the interpreter lock until it releases it itself, or its work ends.
ENDLESS_S = 1e6


@contextmanager
def long_switch_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(ENDLESS_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def lets_others_in(work: Callable[[], object]) -> bool:
    """Whether another thread runs Python code while this thread does some work."""
    has_run: list[bool] = []
    start = threading.Lock()
    start.acquire()

    def run() -> None:
        with start:
            has_run.append(True)

    other = threading.Thread(target=run)
    other.start()
    with long_switch_interval():
        start.release()  # the other thread waits for the interpreter lock from here on
        work()
        is_in = bool(has_run)
    other.join()
    return is_in


def test_python_code_lets_no_other_thread_in() -> None:
    assert not any(lets_others_in(lambda: sum(range(1_000_000))) for _ in range(3))


@pytest.mark.parametrize("toolchain", [name for name in TOOLCHAINS if name != "reference"])
def test_kernels_release_the_interpreter_lock(toolchain: str) -> None:
    text = "g (float[1024,1024] x) => (float[1024,1024] y) { a = MatMul (x, x) y = MatMul (a, x) }"
    module = from_onnx(model_of(text))
    exe = build(partition_whole(module, Target.for_toolchain(toolchain, threads=1)))
    x, y = np.ones((1024, 1024), np.float32), np.zeros((1024, 1024), np.float32)
    kernel = exe.kernels[0]
    kernel.run([x], [y])
    # A call takes milliseconds; the other thread needs microseconds, if the system lets it run at once.
    assert any(lets_others_in(lambda: kernel.run([x], [y])) for _ in range(100))
