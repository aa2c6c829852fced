"""Send requests and measure their latencies.

In an open loop requests arrive at times that do not depend on the answers, as those of many independent
clients do, and a latency counts from the time at which the request was due. A loop that waits for an answer
before it sends again (a closed one) leaves out the requests that a slow answer would have held up: its tail
is too good (coordinated omission, G. Tene). So the closed loop here measures the rate at saturation, and
no tail.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count, cycle
from typing import Any, TypeAlias

import numpy as np

from intarsia.measure.load.load_result import LoadResult

Submit: TypeAlias = Callable[[int], Future[Any]]
"""Sends the request of a number, and returns its future without waiting."""


def run_closed_loop(submit: Submit, concurrency: int, seconds: float) -> LoadResult:
    """Keep so many requests under way for some time.

    Args:
        submit: Function that sends a request.
        concurrency: Number of requests under way, each sent when an earlier one has ended.
        seconds: Time in seconds.
    """
    log = _Log()
    start = time.perf_counter()
    slots = threading.Semaphore(concurrency)
    for number in cycle(range(1 << 30)):
        slots.acquire()
        now = time.perf_counter()
        if now - start >= seconds:
            break
        log.watch(submit(number), now, slots.release)
    log.wait()
    return log.result(time.perf_counter() - start)


def run_chained_loop(submit: Submit, concurrency: int, seconds: float) -> LoadResult:
    """Keep so many requests under way for some time, each sent by the thread that has ended an earlier one.

    No thread of the generator has to wake up for each request, which takes longer than a small program. A
    request is sent from a callback of a future: use `run_closed_loop` where that may wait.

    Args:
        submit: Function that sends a request.
        concurrency: Number of requests under way.
        seconds: Time in seconds.
    """
    log, numbers = _Log(), count()
    start = time.perf_counter()

    def send() -> None:
        while (now := time.perf_counter()) - start < seconds:
            future = submit(next(numbers))
            if not future.done():
                log.watch(future, now, send)
                return
            log.watch(future, now)  # it has ended: a callback would run within this call

    for _ in range(concurrency):
        send()
    log.wait()
    return log.result(time.perf_counter() - start)


def run_open_loop(submit: Submit, rate: float, seconds: float, seed: int = 0) -> LoadResult:
    """Send requests at random times, as independent clients do (a Poisson process).

    Args:
        submit: Function that sends a request.
        rate: Mean number of requests per second.
        seconds: Time in seconds during which requests are due.
        seed: Random seed of the times.
    """
    log = _Log()
    start = time.perf_counter()
    for number, due in enumerate(arrivals(rate, seconds, seed)):
        delay = start + due - time.perf_counter()
        if delay > 0:
            time.sleep(delay)
        log.watch(submit(number), start + due)
    log.wait()
    return log.result(time.perf_counter() - start)


def arrivals(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Yield the times of a Poisson process in seconds, in order, up to an end."""
    rng = np.random.default_rng(seed)
    due = float(rng.exponential(1 / rate))
    while due < seconds:
        yield due
        due += float(rng.exponential(1 / rate))


class _Log:
    """Latencies of requests, which end in other threads."""

    def __init__(self) -> None:
        self._latencies: list[float] = []
        self._failures = 0
        self._pending = 0
        self._changed = threading.Condition()

    def watch(self, future: Future[Any], due: float, on_end: Callable[[], object] | None = None) -> None:
        """Count a request, which was due at a time of `time.perf_counter`, when it ends."""
        with self._changed:
            self._pending += 1

        def note(ended: Future[Any]) -> None:
            latency = time.perf_counter() - due
            has_failed = ended.cancelled() or ended.exception() is not None
            if on_end is not None:
                on_end()  # before this one counts as ended: `wait` is not to see none where another is sent
            with self._changed:
                self._pending -= 1
                self._failures += has_failed
                if not has_failed:
                    self._latencies.append(latency)
                if not self._pending:
                    self._changed.notify_all()

        future.add_done_callback(note)

    def wait(self) -> None:
        """Wait until every request has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending == 0)

    def result(self, seconds: float) -> LoadResult:
        """Return the result of all requests."""
        return LoadResult.of(self._latencies, self._failures, seconds)
