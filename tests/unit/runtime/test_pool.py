"""Pools: the order of calls, back pressure, deadlines, cancelling, errors, and what remains of them."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from tests.device_plans import branch_kernels, two_branches
from tests.fake_clock import FakeClock
from tests.fake_kernels import FakeKernel, f32, fake, plan_of
from tests.forked_children import forked

from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, Kernel, Value
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.pool import Pool
from intarsia.support.errors import (
    DeadlineError,
    ExecutionError,
    InputError,
    PoolClosedError,
    PoolFullError,
    UsageError,
)

pytestmark = pytest.mark.usefixtures("fake_toolchain")

X = np.arange(4, dtype=np.float32)
PATIENCE = 60
"""Seconds after which a pool hangs."""


class Gate(FakeKernel):
    """Doubles its input once the gate is open; its clones have the same gate."""

    def __init__(self) -> None:
        super().__init__(fake("double").source)
        self.is_open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.order: list[float] = []
        self.threads: list[int] = []
        self.clones_made: list[Gate] = []

    def clones(self, count: int, threads: int | None = None) -> Sequence[Kernel]:
        for _ in range(count):
            clone = Gate()
            clone.is_open, clone.entered, clone.order = self.is_open, self.entered, self.order
            clone.threads = self.threads
            self.clones_made.append(clone)
        return self.clones_made[-count:]

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        first = inputs[0]
        assert isinstance(first, np.ndarray)
        self.order.append(float(first[0]))
        self.threads.append(threading.get_ident())
        self.entered.release()
        assert self.is_open.wait(PATIENCE)
        return super().run(inputs, outputs)


def program(kernel: Kernel) -> Executable:
    a = f32("a", 4)
    return Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a]), [kernel])


@contextmanager
def busy_pool(streams: int = 1, **options: Any) -> Iterator[tuple[Pool, Gate, Future[Any]]]:
    """A pool whose first stream runs a call that ends when the gate is opened."""
    gate = Gate()
    with program(gate) as exe, Pool(exe, streams, **options) as pool:
        first = pool.submit(X)
        assert gate.entered.acquire(timeout=PATIENCE)
        try:
            yield pool, gate, first
        finally:
            gate.is_open.set()


def test_results_and_ways_to_give_inputs() -> None:
    with program(fake("double")) as exe, Pool(exe, 2) as pool:
        for inputs in (X, (X,), [X], {"a": X}):
            np.testing.assert_array_equal(pool.submit(inputs).result(PATIENCE), X * 2)
        np.testing.assert_array_equal(pool(X), X * 2)
        np.testing.assert_array_equal(pool(a=X), X * 2)
        assert pool.counts().done == 6


def test_calls_run_in_every_stream_at_the_same_time() -> None:
    with busy_pool(3) as (pool, gate, _):
        others = [pool.submit(X) for _ in range(2)]
        for _ in others:
            assert gate.entered.acquire(timeout=PATIENCE)  # all three are under way
        assert pool.counts().running == 3
        gate.is_open.set()
        for other in others:
            np.testing.assert_array_equal(other.result(PATIENCE), X * 2)


def test_calls_begin_in_the_order_in_which_they_came() -> None:
    with busy_pool(most_waiting=2) as (pool, gate, _):
        futures = [pool.submit(X + 1), pool.submit(X + 2)]
        queue = pool._queue
        threads = []
        for number in (3, 4, 5):  # these stand at the door, one behind another
            waiting = pool.counts().waiting
            threads.append(threading.Thread(target=lambda n=number: futures.append(pool.submit(X + n))))
            threads[-1].start()
            while queue.counts().waiting == waiting:
                pass
        assert pool.counts().waiting == 5
        gate.is_open.set()
        for thread in threads:
            thread.join(PATIENCE)
        for future in futures:
            future.result(PATIENCE)
    assert gate.order == [0, 1, 2, 3, 4, 5]


def test_a_full_pool_refuses_or_lets_the_client_wait() -> None:
    with busy_pool(most_waiting=2) as (pool, gate, _):
        waiting = [pool.submit(X), pool.submit(X)]
        with pytest.raises(PoolFullError, match="2 calls wait, and the pool takes 2"):
            pool.submit(X, wait=False)
        has_returned = threading.Event()

        def submit() -> None:
            waiting.append(pool.submit(X))
            has_returned.set()

        client = threading.Thread(target=submit)
        client.start()
        while pool.counts().waiting < 3:
            pass
        assert not has_returned.is_set()
        gate.is_open.set()
        client.join(PATIENCE)
        assert [future.result(PATIENCE)[1] for future in waiting] == [2, 2, 2]
    assert pool.counts().refused == 1


def test_a_late_call_fails_and_is_not_computed() -> None:
    clock = FakeClock()
    with busy_pool(clock=clock) as (pool, gate, first):
        late, patient = pool.submit(X + 1, timeout=5), pool.submit(X + 2, timeout=50)
        clock.advance(6)
        gate.is_open.set()
        with pytest.raises(DeadlineError, match="did not begin before its deadline"):
            late.result(PATIENCE)
        np.testing.assert_array_equal(patient.result(PATIENCE), (X + 2) * 2)
        first.result(PATIENCE)
    assert gate.order == [0, 2]
    assert pool.counts().late == 1


def test_a_late_call_makes_room_for_another() -> None:
    clock = FakeClock()
    with busy_pool(clock=clock, most_waiting=1) as (pool, _, _first):
        late = pool.submit(X, timeout=5)
        clock.advance(6)
        pool.submit(X, wait=False)
        assert isinstance(late.exception(PATIENCE), DeadlineError)


def test_a_client_at_the_door_does_not_wait_beyond_its_deadline() -> None:
    with busy_pool(most_waiting=1) as (pool, _, _first):
        pool.submit(X)
        late = pool.submit(X, timeout=0.01)
        assert isinstance(late.exception(PATIENCE), DeadlineError)


def test_deadlines_of_calls_that_have_run_are_forgotten() -> None:
    with program(fake("double")) as exe, Pool(exe, 1) as pool:
        for _ in range(1000):
            pool.submit(X, timeout=3600).result(PATIENCE)
        assert len(pool._queue._deadlines) < 200


def test_a_cancelled_call_is_not_computed_and_makes_room() -> None:
    with busy_pool(most_waiting=1) as (pool, gate, first):
        dropped = pool.submit(X + 1)
        assert dropped.cancel()
        kept = pool.submit(X + 2, wait=False)
        assert not first.cancel()  # it runs
        gate.is_open.set()
        kept.result(PATIENCE)
        with pytest.raises(CancelledError):
            dropped.result(PATIENCE)
    assert gate.order == [0, 2]
    counts = pool.counts()
    assert (counts.cancelled, counts.done, counts.waiting, counts.running) == (1, 2, 0, 0)


def test_errors_go_to_the_client_and_the_stream_goes_on() -> None:
    with program(fake("broken")) as exe, Pool(exe, 1) as pool:
        for _ in range(3):
            with pytest.raises(ExecutionError, match="ZeroDivisionError"):
                pool(X)
        with pytest.raises(InputError):
            pool(X.astype(np.int8))
        assert (pool.counts().failed, pool.counts().done) == (4, 0)


def test_closing_runs_what_waits_or_lets_it_fail() -> None:
    for cancels, kinds in ((False, [type(None)] * 2), (True, [type(None), PoolClosedError])):
        with busy_pool() as (pool, gate, first):
            waiting = pool.submit(X)
            closing = threading.Thread(target=lambda p=pool, c=cancels: p.close(cancel_waiting=c))
            closing.start()
            if cancels:
                assert isinstance(waiting.exception(PATIENCE), PoolClosedError)
            gate.is_open.set()
            closing.join(PATIENCE)
            assert [type(future.exception(PATIENCE)) for future in (first, waiting)] == kinds
            with pytest.raises(PoolClosedError, match="the pool is closed"):
                pool.submit(X)


def test_closing_closes_the_clones_once_and_not_the_program() -> None:
    gate = Gate()
    gate.is_open.set()
    exe = program(gate)
    with Pool(exe, 2) as pool:
        pool(X)
    pool.close()
    assert [clone.closed for clone in gate.clones_made] == [1, 1]
    np.testing.assert_array_equal(exe(X), X * 2)


def test_a_dropped_pool_ends_its_threads() -> None:
    exe = program(fake("double"))
    pool = Pool(exe, 2)
    pool.submit(X).result(PATIENCE)
    threads = list(pool._threads)
    assert len(threads) == 2
    del pool
    gc.collect()
    assert not any(thread.is_alive() for thread in threads)


def test_a_callback_may_close_the_pool() -> None:
    pool = Pool(program(fake("double")), 2)
    closed = threading.Event()
    with busy_pool() as (other, gate, first):

        def close(_: Future[Any]) -> None:
            other.close()
            closed.set()

        first.add_done_callback(close)
        gate.is_open.set()
        assert closed.wait(PATIENCE)
    pool.close()


def test_no_array_is_kept_alive_after_a_call() -> None:
    class Mine(np.ndarray[tuple[int, ...], np.dtype[np.float32]]):
        """Arrays cannot be referred to weakly, objects of a subclass can."""

    with program(fake("double")) as exe, Pool(exe, 1) as pool:
        mine = X.copy().view(Mine)
        gone = weakref.ref(mine)
        future = pool.submit(mine)
        del mine
        future.result(PATIENCE)
        pool.submit(X).result(PATIENCE)  # the stream has left the first call behind
        assert gone() is None, "while its future lives"


def test_asyncio_waits_for_room_and_cancels() -> None:
    async def play() -> tuple[list[float], int]:
        with busy_pool(most_waiting=1) as (pool, gate, _):
            tasks = [asyncio.create_task(pool.run_async(X + n)) for n in range(1, 5)]
            await asyncio.sleep(0)
            with pytest.raises(PoolFullError):
                await pool.run_async(X, wait=False)
            tasks[1].cancel()
            await asyncio.sleep(0)
            gate.is_open.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(results[1], asyncio.CancelledError)
            return [float(results[n][0]) for n in (0, 2, 3)], pool.counts().cancelled  # type: ignore[index]

    assert asyncio.run(play()) == ([2, 6, 8], 1)


def test_a_forked_child_starts_streams_of_its_own() -> None:
    with busy_pool() as (pool, gate, first):

        def runs() -> bool:
            gate.is_open = threading.Event()  # the parent's may be held
            gate.clones_made[0].is_open = gate.is_open
            gate.is_open.set()
            return bool((pool(X) == X * 2).all())

        assert forked(runs) == 0
        gate.is_open.set()
        first.result(PATIENCE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"streams": 0, "most_waiting": 1}, "count is 0, expected 1 or more"),
        ({"streams": 1, "threads": 0}, "threads is 0, expected 1 or more"),
        ({"streams": 1, "most_waiting": 0}, "most_waiting is 0, expected 1 or more"),
    ],
)
def test_refused_numbers(options: dict[str, Any], message: str) -> None:
    with program(fake("double")) as exe, pytest.raises(UsageError, match=message):
        Pool(exe, **options)


def test_streams_of_programs_on_devices_have_devices_of_their_own() -> None:
    with Executable(two_branches(("cpu:0", "cpu:1")), branch_kernels()) as exe, Pool(exe, 2) as pool:
        x = np.arange(8, dtype=np.float32)
        futures = [pool.submit(x) for _ in range(6)]
        for future in futures:
            np.testing.assert_array_equal(future.result(PATIENCE), exe(x))
        devices = [device for clone in pool._clones for device in clone._devices]
        assert len({id(device.worker) for device in devices}) == 4


def test_closed_executables_have_no_clones() -> None:
    exe = program(fake("double"))
    exe.close()
    with pytest.raises(UsageError, match="the executable is closed"):
        Pool(exe, 2)
