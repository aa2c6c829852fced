"""Thread pools: every element is computed once, whoever calls, however often, with however many threads."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from tests.native_ir import SCRATCH_BYTES, kernel
from tests.process_threads import pinned, task_names, tasks_named

from intarsia.native.execution.crew import THREAD_NAME, Scratch
from intarsia.native.execution.driver_records import RuntimeRecord
from intarsia.native.execution.thread_pool import ThreadPool

pytestmark = pytest.mark.quick_tests(20)

THREADS = (1, 2, 3, 8)
CALLER = 0
"""The calling thread, in calls of the system."""


def run_regions(pool: ThreadPool, extent: int, loops: int) -> npt.NDArray[np.int32]:
    """How often each element was met."""
    counts = np.zeros(1000, np.int32)
    kernel("regions")(counts, np.array([extent, loops]), pool=pool)
    return counts


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("extent", [0, 1, 2, 3, 7, 31, 32, 33, 1000])
def test_each_element_once(threads: int, extent: int) -> None:
    with ThreadPool(threads) as pool:
        counts = run_regions(pool, extent, 3)
    np.testing.assert_array_equal(counts, np.where(np.arange(1000) < extent, 3, 0))


@pytest.mark.parametrize("threads", [2, 3, 5, 8])
def test_loops_of_other_lengths_follow_each_other(threads: int) -> None:
    """A ticket says nothing about a loop in which its thread has no chunks, or about later ones."""
    draw = np.random.default_rng(threads)
    expected = np.zeros(1000, np.int32)
    counts, regions = np.zeros(1000, np.int32), kernel("regions")
    with ThreadPool(threads) as pool:
        for extent in draw.choice([1, 2, 3, 5, 7, 14, 28, 33, 1000], 600):
            loops = int(draw.integers(1, 20))
            regions(counts, np.array([extent, loops]), pool=pool)
            expected[:extent] += loops
    np.testing.assert_array_equal(counts, expected)


def test_negative_extents_do_nothing() -> None:
    with ThreadPool(2) as pool:
        assert not run_regions(pool, -5, 2).any()


@pytest.mark.parametrize("threads", THREADS)
def test_ten_thousand_regions(threads: int) -> None:
    with ThreadPool(threads) as pool:
        counts = run_regions(pool, 64, 10_000)
    assert (counts[:64] == 10_000).all()
    assert not counts[64:].any()


def test_ten_thousand_empty_regions() -> None:
    with ThreadPool(2) as pool:
        assert not run_regions(pool, 0, 10_000).any()


@pytest.mark.parametrize("pause", [0, 1e-3], ids=["spinning", "sleeping"])
def test_many_short_runs(pause: float) -> None:
    with ThreadPool(3) as pool:
        counts = np.zeros(1000, np.int32)
        regions, sizes = kernel("regions"), np.array([50, 1])
        for _ in range(500):
            regions(counts, sizes, pool=pool)
            time.sleep(pause)  # workers spin for less time than that
    assert (counts[:50] == 500).all()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_callers_in_several_python_threads(threads: int) -> None:
    regions = kernel("regions")

    def call(_: int) -> bool:
        counts = np.zeros(1000, np.int32)
        for _ in range(50):
            regions(counts, np.array([100, 20]), pool=pool)
        return bool((counts[:100] == 1000).all())

    with ThreadPool(threads) as pool, ThreadPoolExecutor(6) as callers:
        assert all(callers.map(call, range(24)))


@pytest.mark.parametrize("threads", THREADS)
def test_loops_inside_loops_run_serially_with_own_scratch(threads: int) -> None:
    nested = kernel("nested")
    expected = np.tile(np.arange(16), (32, 1))
    expected[:, 0] += np.arange(32)
    with ThreadPool(threads) as pool:
        for repeat in range(1, 30):
            matrix = np.zeros((32, 16), np.int64)
            nested(matrix, pool=pool)
            np.testing.assert_array_equal(matrix, expected, err_msg=str(repeat))


def test_nested_loops_of_several_callers() -> None:
    nested = kernel("nested")
    expected = np.tile(np.arange(16), (32, 1))
    expected[:, 0] += np.arange(32)

    def call(_: int) -> bool:
        matrix = np.zeros((32, 16), np.int64)
        nested(matrix, pool=pool)
        return np.array_equal(matrix, expected)

    with ThreadPool(3) as pool, ThreadPoolExecutor(4) as callers:
        assert all(callers.map(call, range(200)))


@pytest.mark.parametrize("threads", THREADS)
def test_threads_do_not_share_scratch(threads: int) -> None:
    scratch = kernel("scratch")

    def call(_: int) -> list[int]:
        places = np.zeros(1000, np.int64)
        scratch(places, pool=pool)
        return sorted(set(places.tolist()))

    with ThreadPool(threads) as pool, ThreadPoolExecutor(3) as callers:
        for places in callers.map(call, range(60)):
            assert 0 not in places  # a thread that another disturbs writes 0
            assert len(places) <= threads
            assert all(place % 64 == 0 for place in places)
            assert all(later - first >= SCRATCH_BYTES for first, later in pairwise(places))


def test_parts_of_scratch_do_not_begin_alike_in_their_pages() -> None:
    assert [Scratch(2, size).stride for size in (0, 1, 64, 65, 4096, 8192)] == [0, 64, 64, 128, 4160, 8256]


def test_kernels_see_the_agreed_record() -> None:
    offsets = [(name, getattr(RuntimeRecord, name).offset) for name, _ in RuntimeRecord._fields_[:3]]
    assert offsets == [("parallel_for", 0), ("scratch", 8), ("scratch_bytes", 16)]
    assert (RuntimeRecord.failed_check.offset, RuntimeRecord.failed_index.offset) == (48, 56)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_workers_leave_the_core_of_their_caller() -> None:
    """Two threads of one core are parted by the system after many runs only."""
    usable = os.sched_getaffinity(0)
    others = tasks_named(THREAD_NAME)
    with ThreadPool(2) as pool:
        run_regions(pool, 64, 1)
        for core in sorted(usable)[:2]:
            with pinned([CALLER], core):
                run_regions(pool, 64, 1)
            (worker,) = tasks_named(THREAD_NAME) - others
            assert os.sched_getaffinity(worker) == usable - {core}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_workers_stay_where_taskset_has_put_the_process(order: tuple[int, int]) -> None:
    """Even if they were there anyway, to leave the other core to their caller."""
    usable = os.sched_getaffinity(0)
    first, second = (sorted(usable)[number] for number in order)
    others = tasks_named(THREAD_NAME)
    with ThreadPool(2) as pool:
        with pinned([CALLER], second):
            run_regions(pool, 64, 1)
        (worker,) = tasks_named(THREAD_NAME) - others
        with pinned(task_names(), first):
            for core in (first, second, first):
                with pinned([CALLER], core):
                    run_regions(pool, 64, 1)
                assert os.sched_getaffinity(worker) == {first}


def test_more_threads_than_cores_go_anywhere() -> None:
    usable = os.sched_getaffinity(0)
    others = tasks_named(THREAD_NAME)
    with ThreadPool(len(usable) + 1) as pool:
        run_regions(pool, 64, 1)
        workers = tasks_named(THREAD_NAME) - others
        assert len(workers) == len(usable)
        assert all(os.sched_getaffinity(worker) == usable for worker in workers)


def test_pools_are_resized_while_callers_change_their_core() -> None:
    """No thread is asked to move that has ended."""
    usable = sorted(os.sched_getaffinity(0))

    def call(pool: ThreadPool) -> bool:
        for number in range(200):
            os.sched_setaffinity(0, {usable[number % len(usable)]})
            if (run_regions(pool, 64, 1)[:64] != 1).any():
                return False
        return True

    with ThreadPool(2) as pool, ThreadPoolExecutor(2) as callers:
        found = [callers.submit(call, pool) for _ in range(2)]
        for number in range(100):
            pool.resize(1 + number % 2)
        assert all(each.result() for each in found)
