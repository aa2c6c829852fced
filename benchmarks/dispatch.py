"""Time to run a trivial task in a worker, and to replace a worker that was lost.

The goal is a median below 3 ms from `submit` to the result. The pools alternate, task by task.
"standard library" is `concurrent.futures.ProcessPoolExecutor` started by "forkserver", which has no limits
and loses all tasks when one worker dies. The last row is the sum of a task that exits its process and of the
next trivial task.
Usage: python -m benchmarks.dispatch [--json] [--tasks N] [--workers N]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import operator
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass

from intarsia.measure.worker_pool import Task, WorkerPool

GOAL_SECONDS = 3e-3
WARM_UP = 50
"""Tasks at the beginning that do not count."""


@dataclass(frozen=True)
class Row:
    """Seconds from `submit` to the result for one kind of pool: the median and the 95 % quantile."""

    name: str
    median: float
    ninety_five: float


def call(pool: Executor) -> None:
    pool.submit(operator.neg, 1).result()


def call_within_limits(pool: WorkerPool) -> None:
    pool.submit_task(Task(operator.neg, (1,), timeout_s=60.0, memory_bytes=1 << 30)).result()


def lose_and_call(pool: WorkerPool) -> None:
    pool.submit(os._exit, 1).exception()
    call(pool)


def time_call(function: Callable[[], None]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def row(name: str, times: list[float]) -> Row:
    return Row(name, statistics.median(times), statistics.quantiles(times, n=20)[-1])


def measure(tasks: int, workers: int) -> list[Row]:
    standard = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("forkserver"))
    with WorkerPool(workers) as pool, standard:
        runs: dict[str, Callable[[], None]] = {
            "worker pool": lambda: call(pool),
            "worker pool, with limits": lambda: call_within_limits(pool),
            "standard library": lambda: call(standard),
        }
        times: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(-WARM_UP, tasks):
            for name, run_task in runs.items():
                seconds = time_call(run_task)
                if number >= 0:
                    times[name].append(seconds)
        rows = [row(name, seconds) for name, seconds in times.items()]
    with WorkerPool(1) as alone:
        call(alone)
        lost = [time_call(lambda: lose_and_call(alone)) for _ in range(max(20, tasks // 20))]
    return [*rows, row("a lost worker and the next task", lost)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    rows = measure(options.tasks, options.workers)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    goal = f"goal: median below {GOAL_SECONDS * 1e3:g} ms"
    print(f"{options.tasks} trivial tasks, {options.workers} workers ({goal})")
    for result in rows:
        times = f"median {result.median * 1e3:7.3f} ms   95 % {result.ninety_five * 1e3:7.3f} ms"
        print(f"  {result.name:32} {times}")


if __name__ == "__main__":
    main()
