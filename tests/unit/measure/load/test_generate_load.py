"""Open and closed loops: what they send when, and from when latencies count."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from intarsia.measure.load import generate_load
from intarsia.measure.load.generate_load import (
    Submit,
    arrivals,
    run_chained_loop,
    run_closed_loop,
    run_open_loop,
)
from intarsia.measure.load.load_result import LoadResult


class Clock:
    """Time that passes by sleeping, and while a request is sent."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(
        generate_load, "time", SimpleNamespace(perf_counter=lambda: clock.now, sleep=clock.sleep)
    )
    return clock


def ended(error: Exception | None = None) -> Future[Any]:
    future: Future[Any] = Future()
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
    return future


def test_latencies_count_from_the_time_at_which_a_request_was_due(clock: Clock) -> None:
    """A server that stalls for 10 s with the first request holds up those that were due meanwhile."""

    def submit(number: int) -> Future[Any]:
        if number == 0:
            clock.sleep(10)
        return ended()

    result = run_open_loop(submit, rate=10, seconds=10, seed=3)
    due = np.array(list(arrivals(10, 10, 3)))
    assert result.requests == len(due)
    expected = np.maximum(due[0] + 10 - due, 0)
    assert result.p50 == pytest.approx(np.median(expected))
    assert result.p50 > 3, "a loop that waits would have measured 0"


def test_requests_are_sent_when_they_are_due(clock: Clock) -> None:
    sent = []

    def submit(_: int) -> Future[Any]:
        sent.append(clock.now)
        return ended()

    result = run_open_loop(submit, rate=50, seconds=4, seed=1)
    np.testing.assert_allclose(sent, list(arrivals(50, 4, 1)))
    assert result.p99 == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("rate", [3.0, 400.0])
def test_arrivals_are_a_poisson_process(rate: float) -> None:
    times = np.array(list(arrivals(rate, 4000 / rate, 7)))
    assert list(times) == sorted(times)
    assert list(times) == list(arrivals(rate, 4000 / rate, 7))
    assert len(times) == pytest.approx(4000, rel=0.1)
    gaps = np.diff(times)
    assert np.std(gaps) == pytest.approx(np.mean(gaps), rel=0.1)


@pytest.mark.parametrize("run", [run_closed_loop, run_chained_loop])
def test_a_closed_loop_keeps_its_number_of_requests_under_way(
    run: Callable[[Submit, int, float], LoadResult],
) -> None:
    under_way, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        with lock:
            under_way -= 1

    with ThreadPoolExecutor(8) as executor:
        result = run(lambda _: executor.submit(work), 3, 0.05)
    assert 1 <= most <= 3
    assert result.requests > 3
    assert result.failures == 0


def test_a_chain_sends_in_the_threads_that_end_requests_and_waits_for_the_last() -> None:
    senders: set[str] = set()
    ended_requests: list[int] = []

    def submit(number: int) -> Future[Any]:
        senders.add(threading.current_thread().name)
        future = executor.submit(time.sleep, 0.001)
        future.add_done_callback(lambda _: ended_requests.append(number))
        return future

    with ThreadPoolExecutor(1, thread_name_prefix="server") as executor:
        result = run_chained_loop(submit, 1, 0.1)
        assert sorted(ended_requests) == list(range(result.requests)), "it has waited for each"
    assert result.requests > 3
    assert {"server_0", threading.current_thread().name} >= senders > {threading.current_thread().name}


def test_a_chain_goes_on_where_requests_end_at_once(clock: Clock) -> None:
    """As many as the recursion limit of Python, and more."""

    def submit(number: int) -> Future[Any]:
        clock.sleep(0.001)
        return ended(ValueError() if number == 7 else None)

    result = run_chained_loop(submit, 2, 5.0)
    assert (result.requests, result.failures) == (4999, 1)


def test_failures_are_counted_and_have_no_latency(clock: Clock) -> None:
    result = run_open_loop(lambda n: ended(ValueError() if n % 2 else None), 100, 1, 0)
    count = len(list(arrivals(100, 1, 0)))
    assert (result.requests, result.failures) == (-(-count // 2), count // 2)


def test_a_result_without_requests_has_no_quantiles() -> None:
    assert LoadResult.of([], 2, 1.0) == LoadResult(0, 2, 0.0, np.inf, np.inf, np.inf)
