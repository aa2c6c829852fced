"""Calls that a client runs in its own thread on an idle stream of a pool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from tests.fake_clock import FakeClock
from tests.fake_kernels import FakeKernel, fake
from tests.forked_children import forked
from tests.unit.runtime.test_pool import PATIENCE, Gate, X, busy_pool, program

from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, Kernel, Value
from intarsia.runtime.pool import Pool
from intarsia.support.errors import DeadlineError, ExecutionError, PoolClosedError

pytestmark = pytest.mark.usefixtures("fake_toolchain")


def wait_until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        pass


@contextmanager
def borrowing_client(streams: int = 1, **options: object) -> Iterator[tuple[Pool, Gate, Future[Array]]]:
    """A pool with a client that runs a call in its own thread, which ends when the gate is opened."""
    gate = Gate()
    with (
        ThreadPoolExecutor(1) as client,
        program(gate) as exe,
        Pool(exe, streams, **options) as pool,  # type: ignore[arg-type]  # options of Pool
    ):
        result = client.submit(pool, X)
        assert gate.entered.acquire(timeout=PATIENCE)
        try:
            yield pool, gate, result
        finally:
            gate.is_open.set()


def test_a_call_on_an_idle_pool_runs_in_the_thread_of_its_client() -> None:
    gate = Gate()
    gate.is_open.set()
    with program(gate) as exe, Pool(exe, 2) as pool:
        np.testing.assert_array_equal(pool(X), X * 2)
        np.testing.assert_array_equal(pool(a=X), X * 2)
        assert pool._threads == [], "no thread has been started"
        counts = pool.counts()
    assert gate.threads == [threading.get_ident()] * 2
    assert (counts.done, counts.running) == (2, 0)


def test_a_client_does_not_overtake_calls_that_wait() -> None:
    with busy_pool() as (pool, gate, _), ThreadPoolExecutor(1) as client:
        pool.submit(X + 1)
        blocked = client.submit(pool, X + 2)
        wait_until(lambda: pool.counts().waiting == 2)
        last = pool.submit(X + 3)
        gate.is_open.set()
        np.testing.assert_array_equal(blocked.result(PATIENCE), (X + 2) * 2)
        last.result(PATIENCE)
    assert gate.order == [0, 1, 2, 3]
    assert len(set(gate.threads)) == 1, "all run in the pool's thread"


def test_a_stream_that_a_client_gives_back_goes_to_the_calls_that_wait() -> None:
    with borrowing_client() as (pool, gate, result):
        waiting = [pool.submit(X + 1), pool.submit(X + 2)]
        assert pool.counts().running == 1
        gate.is_open.set()
        for number, future in enumerate(waiting, 1):
            np.testing.assert_array_equal(future.result(PATIENCE), (X + number) * 2)
        np.testing.assert_array_equal(result.result(PATIENCE), X * 2)
    assert gate.order == [0, 1, 2]


def test_clients_and_threads_use_all_streams_at_the_same_time() -> None:
    with borrowing_client(3) as (pool, gate, _), ThreadPoolExecutor(1) as client:
        futures = [pool.submit(X), client.submit(pool, X)]
        for _ in futures:
            assert gate.entered.acquire(timeout=PATIENCE)
        assert pool.counts().running == 3
        gate.is_open.set()
        for future in futures:
            future.result(PATIENCE)


def test_a_late_call_behind_a_borrowed_stream_is_not_computed() -> None:
    clock = FakeClock()
    with borrowing_client(clock=clock) as (pool, gate, _):
        late = pool.submit(X + 1, timeout=5)
        clock.advance(6)
        gate.is_open.set()
        assert isinstance(late.exception(PATIENCE), DeadlineError)
    assert gate.order == [0]


@pytest.mark.parametrize("cancels", [False, True])
def test_closing_waits_for_a_borrowed_stream(cancels: bool) -> None:
    with borrowing_client() as (pool, gate, result), ThreadPoolExecutor(1) as other:
        waiting = pool.submit(X + 1)
        closing = other.submit(pool.close, cancel_waiting=cancels)
        if cancels:
            assert isinstance(waiting.exception(PATIENCE), PoolClosedError)
        assert not closing.done()
        assert gate.clones_made[0].closed == 0
        gate.is_open.set()
        closing.result(PATIENCE)
        np.testing.assert_array_equal(result.result(PATIENCE), X * 2)
        if not cancels:
            np.testing.assert_array_equal(waiting.result(PATIENCE), (X + 1) * 2)
        assert gate.clones_made[0].closed == 1
        with pytest.raises(PoolClosedError, match="the pool is closed"):
            pool(X)


def test_a_stream_is_given_back_after_an_error() -> None:
    with program(fake("broken")) as exe, Pool(exe, 1) as pool:
        for _ in range(2):
            with pytest.raises(ExecutionError, match="ZeroDivisionError"):
                pool(X)
        counts = pool.counts()
    assert (counts.failed, counts.running) == (2, 0)


def test_an_interrupt_loses_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler may raise between the end of `borrow` and the use of its result."""
    with program(fake("double")) as exe, Pool(exe, 1) as pool:
        borrow = pool._queue.borrow

        def interrupted(borrowed: list[Executable]) -> bool:
            borrow(borrowed)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(pool._queue, "borrow", interrupted)
            with pytest.raises(KeyboardInterrupt):
                pool(X)
        np.testing.assert_array_equal(pool(X), X * 2)
        assert pool.counts().running == 0


def test_an_interrupt_within_a_call_gives_the_stream_back() -> None:
    class Interrupted(FakeKernel):
        def clones(self, count: int, threads: int | None = None) -> Sequence[Kernel]:
            return [self]

        def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
            raise KeyboardInterrupt

    with program(Interrupted(fake("double").source)) as exe, Pool(exe, 1) as pool:
        with pytest.raises(KeyboardInterrupt):
            pool(X)
        assert pool.counts().running == 0
        assert len(pool._queue._idle) == 1


def test_a_forked_child_has_the_streams_that_clients_have_borrowed() -> None:
    with borrowing_client() as (pool, gate, result):

        def runs() -> bool:
            gate.clones_made[0].is_open = threading.Event()  # the parent's may be held
            gate.clones_made[0].is_open.set()
            return bool((pool(X) == X * 2).all())

        assert forked(runs) == 0
        gate.is_open.set()
        result.result(PATIENCE)


def test_a_callback_may_call_the_pool() -> None:
    """In the thread of the only stream: which is idle by then."""
    results: list[Array] = []
    with busy_pool() as (pool, gate, first):
        first.add_done_callback(lambda _: results.append(pool(X + 1)))
        gate.is_open.set()
        first.result(PATIENCE)
    np.testing.assert_array_equal(results, [(X + 1) * 2])
