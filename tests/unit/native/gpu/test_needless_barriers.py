"""Barriers that order nothing go, all others stay: kernels before and after, in the interpreter."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from tests.effort import examples
from tests.gpu_on_cpu.cpu_kernels import Array
from tests.gpu_on_cpu.kernel_checks import check_kernels, interpreted, whole_numbers
from tests.native_workloads import Tensors, layer_norm, matmul, softmax_nm
from tests.properties.random_barriers import barrier_kernels
from tests.tir_checks import in_module, parsed
from tests.unit.native.gpu.test_default_gpu_state import with_each_fault

from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Barrier
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.needless_barriers import without_needless_barriers
from intarsia.native.tir import SplitAtBarriers, interpret
from intarsia.support.errors import ExecutionError

HEAD = "def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {"


def kernel(body: str, threads: int = 8, extent: int = 8) -> PrimFunc:
    shared = f"alloc row: Buffer[({extent},), float32, shared] {{ for thread t in {threads} {{ {body} }} }}"
    return parsed(f"{HEAD} for block b in 4 {{ {shared} }} }}")


def barriers(function: PrimFunc) -> int:
    return sum(isinstance(visit.statement, Barrier) for visit in walk(function.body))


def results(function: PrimFunc) -> Array:
    y = np.zeros((4, 8), np.float32)
    interpret(function, [np.arange(32, dtype=np.float32).reshape(4, 8), y])
    return y


def left(body: str, threads: int = 8, extent: int = 8) -> int:
    """How many barriers stay in a kernel; it computes the same, and each of them is needed."""
    before = kernel(body, threads, extent)
    after = without_needless_barriers(before)
    verify(in_module(after))
    np.testing.assert_array_equal(results(after), results(before))
    for number in range(barriers(after)):
        with pytest.raises(ExecutionError, match="race for element"):
            results(without(after, number))
    return barriers(after)


def without(function: PrimFunc, number: int) -> PrimFunc:
    faults = list(with_each_fault(function))
    return faults[number]


NEEDLESS = {
    "each thread reads what it wrote": "row[t] = x[b, t]; barrier; y[b, t] = row[t];",
    "nothing is behind it": "y[b, t] = x[b, t]; barrier;",
    "threads read only": "y[b, t] = x[b, t]; barrier; y[b, t] = y[b, t] + x[b, 7 - t];",
    "each thread has a row": "for i in 2 { if t < 4 { row[t * 2 + i] = x[b, t]; } } barrier; "
    "for i in 2 { if t < 4 { y[b, t * 2 + i] = row[t * 2 + 1 - i]; } }",
    "threads have parts": "if t < 4 { row[t] = x[b, t]; } barrier; if 3 < t { row[t] = x[b, 0]; } "
    "y[b, t] = row[t];",
    "again and again": "for i in 3 { row[t] = x[b, t]; barrier; y[b, t] = row[t]; barrier; }",
    "turns of a buffer": "for i in 2 { row[(t + i * 4) mod 8] = x[b, t]; barrier; "
    "y[b, t] = row[(t + i * 4) mod 8]; }",
}


@pytest.mark.parametrize("name", NEEDLESS)
def test_a_barrier_that_orders_nothing_goes(name: str) -> None:
    threads = 4 if name == "turns of a buffer" else 8
    assert left(NEEDLESS[name], threads) == 0


def test_a_single_thread_needs_no_barrier() -> None:
    body = "for i in 8 { row[i] = x[b, i]; } barrier; for i in 8 { y[b, i] = row[7 - i]; }"
    assert left(body, threads=1) == 0


NEEDED = {
    "another thread reads": ("row[t] = x[b, t]; barrier; y[b, t] = row[7 - t];", 1),
    "another thread writes again": (
        "for i in 2 { row[t] = x[b, t]; barrier; y[b, t] = row[7 - t]; barrier; }",
        2,
    ),
    "one of two covers both": ("row[t] = x[b, t]; barrier; barrier; y[b, t] = row[7 - t];", 1),
    "what it writes is read behind the next one": (
        "row[t] = x[b, t]; barrier; y[b, t] = x[b, t]; barrier; y[b, t] = row[7 - t];",
        1,
    ),
    "the next iteration reads": (
        "row[t] = x[b, t]; barrier; for i in 2 { y[b, t] = row[7 - t]; barrier; row[t] = x[b, t]; barrier; }",
        3,
    ),
    "a guard that all threads decide alike": (
        "row[t] = x[b, t]; if b < 2 { barrier; y[b, t] = row[7 - t]; } else { y[b, t] = row[t]; barrier; }",
        1,
    ),
    "the last iteration is read": ("for i in 3 { row[t] = x[b, t]; barrier; } y[b, t] = row[7 - t];", 1),
}


@pytest.mark.parametrize("name", NEEDED)
def test_a_barrier_between_two_threads_stays(name: str) -> None:
    body, count = NEEDED[name]
    assert left(body) == count


def test_a_wait_is_followed_by_a_barrier_as_other_threads_read() -> None:
    copied = "async copy row[t] = x[b, t] width 1; async commit; async wait 0; barrier; y[b, t] = row[7 - t];"
    assert barriers(without_needless_barriers(kernel(copied))) == 1


def test_indices_of_data_are_any_elements() -> None:
    function = parsed(
        "def prim @f(n: Buffer[(8,), int64], x: Buffer[(8,), float32], y: Buffer[(8,), float32]) { "
        "for block b in 1 { alloc row: Buffer[(8,), float32, shared] { for thread t in 8 { "
        "row[t] = x[t]; barrier; y[t] = row[n[t]]; } } } }"
    )
    assert barriers(without_needless_barriers(function)) == 1


@given(barrier_kernels())
@settings(max_examples=examples(300, 20), deadline=None, suppress_health_check=list(HealthCheck))
def test_drawn_kernels_compute_the_same_without_races(text: str) -> None:
    before = parsed(text)
    x = np.random.default_rng(0).integers(-8, 9, 16).astype(np.float32)
    expected = memory(x)
    try:
        interpret(before, expected)
    except ExecutionError:  # some statements write what they read
        assume(False)
    after = without_needless_barriers(before)
    verify(in_module(after))
    given_back = memory(x)
    interpret(after, given_back)
    split = memory(x)
    interpret(SplitAtBarriers()(in_module(after)).prim_func("f"), split)
    for name in ("y", "z"):
        np.testing.assert_array_equal(given_back[name], expected[name])
        np.testing.assert_array_equal(split[name], expected[name])
    if "for k" not in text and "if b" not in text:  # values of counters and guards on a way are not looked at
        for number in range(barriers(after)):
            with pytest.raises(ExecutionError, match="race for element"):
                interpret(without(after, number), memory(x))


def memory(x: Array) -> dict[str, Array]:
    return {"x": x.copy(), "y": np.zeros((2, 16), np.float32), "z": np.zeros((2, 16), np.float32)}


WORKLOADS: dict[str, Callable[[], Tensors]] = {
    "layer norm": layer_norm,
    "softmax": lambda: softmax_nm(3, 200),
    "product": lambda: matmul(40, 36, 50),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_each_barrier_of_a_workload_is_needed(name: str) -> None:
    dag = ComputeDAG(WORKLOADS[name]())
    function = gpu_kernels(dag)
    check_kernels(dag, function)
    for number in range(barriers(function)):
        with pytest.raises(ExecutionError, match="race for element"):
            interpreted(without(function, number), whole_numbers(dag))
