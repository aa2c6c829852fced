"""Worker threads: they begin, end, and go through forks, failures and the end of the interpreter."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from tests.native_ir import kernel
from tests.process_threads import tasks_named

from intarsia.native.execution.crew import THREAD_NAME
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.support.errors import ExecutionError, UsageError


def workers() -> int:
    """How many worker threads this process has now."""
    return len(tasks_named(THREAD_NAME))


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether it becomes so in a time that no busy machine needs."""
    for _ in range(2000):
        if condition():
            return True
        time.sleep(0.01)
    return False


def run_regions(pool: ThreadPool, extent: int, loops: int) -> npt.NDArray[np.int32]:
    """How often each element was met."""
    counts = np.zeros(1000, np.int32)
    kernel("regions")(counts, np.array([extent, loops]), pool=pool)
    return counts


def test_one_thread_has_no_workers() -> None:
    before = workers()
    with ThreadPool(1) as pool:
        run_regions(pool, 100, 10)
        assert workers() == before


def test_workers_start_with_the_first_region_and_end_with_the_pool() -> None:
    before = workers()
    with ThreadPool(4) as pool:
        assert workers() == before
        run_regions(pool, 100, 10)
        assert comes_true(lambda: workers() == before + 3)
    assert workers() == before


def test_several_pools_side_by_side() -> None:
    pools = [ThreadPool(threads) for threads in (2, 3, 1, 2)]
    for _ in range(20):
        for pool in pools:
            assert (run_regions(pool, 77, 5)[:77] == 5).all()
    for pool in pools:
        pool.close()


def test_forgotten_pools_leave_no_threads() -> None:
    before = workers()
    for _ in range(10):
        run_regions(ThreadPool(3), 64, 2)
    gc.collect()
    assert workers() == before


def test_resizing() -> None:
    before = workers()
    with ThreadPool(1) as pool:
        for threads in (3, 1, 2, 2, 5, 4, 1, 2):
            pool.resize(threads)
            assert pool.threads == threads
            assert (run_regions(pool, 200, 4)[:200] == 4).all()
            assert workers() == before + threads - 1
    assert workers() == before


def test_resizing_and_closing_while_regions_run() -> None:
    before = workers()
    pool, wrong, stop = ThreadPool(2), [], threading.Event()
    regions = kernel("regions")

    def call() -> None:
        while not stop.is_set():
            counts = np.zeros(1000, np.int32)
            try:
                regions(counts, np.array([64, 200]), pool=pool)
            except UsageError:
                return
            if not (counts[:64] == 200).all():
                wrong.append(counts)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    try:
        for threads in (3, 1, 4, 2, 1, 3, 2) * 4:
            pool.resize(threads)
        pool.close()
    finally:
        stop.set()
        for caller in callers:
            caller.join()
    assert not wrong
    assert comes_true(lambda: workers() == before)


def test_closed_pool_is_refused() -> None:
    pool = ThreadPool(2)
    pool.close()
    pool.close()
    with pytest.raises(UsageError, match="this thread pool is closed"):
        run_regions(pool, 1, 1)
    with pytest.raises(UsageError, match="this thread pool is closed"):
        pool.resize(3)


@pytest.mark.parametrize("threads", [0, -1, 5000])
def test_impossible_numbers_of_threads(threads: int) -> None:
    with pytest.raises(UsageError, match=f"{threads} threads: a pool has from 1 to 4096"):
        ThreadPool(threads)


def test_workers_that_do_not_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from intarsia.native.execution import crew

    real = crew._threads()
    started: list[object] = []

    class Refusing:
        pthread_join, pthread_setname_np = real.pthread_join, real.pthread_setname_np
        sched_getcpu = real.sched_getcpu

        @staticmethod
        def pthread_create(*arguments: object) -> int:
            if len(started) == 2:
                return 11  # EAGAIN
            started.append(arguments)
            return int(real.pthread_create(*arguments))

    before = workers()
    monkeypatch.setattr(crew, "_threads", lambda: Refusing)
    with ThreadPool(5) as pool, pytest.raises(ExecutionError, match="worker thread 3 of 4 does not start"):
        run_regions(pool, 1, 1)
    assert len(started) == 2
    assert workers() == before


def in_child(action: Callable[[], bool]) -> bool:
    """Whether the action says yes in a forked child."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if action() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_forked_children_have_their_own_workers() -> None:
    with ThreadPool(3) as pool:
        run_regions(pool, 100, 5)

        def action() -> bool:
            alone = workers() == 0
            right = bool((run_regions(pool, 100, 50)[:100] == 50).all())
            return alone and right and workers() == 2

        assert in_child(action)
        assert in_child(lambda: in_child(action))
        assert (run_regions(pool, 100, 50)[:100] == 50).all()


@pytest.mark.slow
def test_fork_while_another_thread_runs_regions() -> None:
    stop, regions = threading.Event(), kernel("regions")

    def call() -> None:
        while not stop.is_set():
            regions(np.zeros(1000, np.int32), np.array([64, 500]), pool=pool)

    with ThreadPool(2) as pool:
        caller = threading.Thread(target=call)
        caller.start()
        try:
            for _ in range(10):
                assert in_child(lambda: bool((run_regions(pool, 100, 50)[:100] == 50).all()))
        finally:
            stop.set()
            caller.join()


def test_child_may_close_the_pool_of_its_parent() -> None:
    with ThreadPool(2) as pool:
        run_regions(pool, 100, 5)

        def action() -> bool:
            pool.close()
            return True

        assert in_child(action)
        assert (run_regions(pool, 100, 50)[:100] == 50).all()


SCRIPT = """
import sys, threading, numpy as np
from intarsia.native.execution.thread_pool import ThreadPool
from tests.native_ir import kernel
from tests.process_threads import tasks_named
pool, regions = ThreadPool(3), kernel("regions")
def call(loops):
    counts = np.zeros(1000, np.int32)
    regions(counts, np.array([1000, loops]), pool=pool)
    return counts
assert (call(5) == 5).all()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending",
    [
        "",
        "sys.exit(0)",
        "threading.Thread(target=call, args=(300,)).start()",
        "threading.Thread(target=call, args=(1000000,), daemon=True).start()",
        "globals()['keep'] = pool; import builtins; builtins.keep = pool",
    ],
)
def test_interpreter_ends_well(ending: str) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT + ending], check=True, timeout=120)


def test_interruption_reaches_python() -> None:
    script = """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
try:
    call(1)
except KeyboardInterrupt:
    pass
try:
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    while True:
        call(50)
except KeyboardInterrupt:
    assert (call(5) == 5).all()
    print("interrupted")
"""
    script = script.replace("os.kill(os.getpid(), signal.SIGINT)\ntry", "try")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + script], check=True, timeout=120, capture_output=True
    )
    assert done.stdout == b"interrupted\n"
