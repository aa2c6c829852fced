"""Measure the winners of searches again, interleaved."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.native_kernels import Run, peak_run
from benchmarks.native_search import SearchSettings, compile_schedule, replay_winner
from benchmarks.schedule_searches import TVM, Search
from benchmarks.search_workloads import SearchWorkload
from benchmarks.tvm_environment import TvmEnvironment

from intarsia.measure.timing.host_lock import exclusive_host

QUIET_SECONDS, WINDOW_SECONDS = 0.25, 0.05
"""Pause before each window, and length of a window, in seconds.

Threads of TVM spin for up to 0.15 s after a call.
"""


def time_winners(
    winners: Sequence[Search],
    workload: SearchWorkload,
    settings: SearchSettings,
    environment: TvmEnvironment | None,
    rounds: int,
) -> tuple[list[float], float]:
    """Return the seconds of a call of each winner, and the peak of the machine in operations a second.

    Seconds are medians over rounds. Each round also measures the peak of one thread; the result is the best
    of the rounds, multiplied by the number of threads.
    """
    folders = [Path(search.log.winner) for search in winners if search.by == TVM]
    dag, contents = workload.dag(), workload.contents()
    native_runs: dict[int, Run] = {}
    for index, search in enumerate(winners):
        if search.by != TVM:
            native_runs[index] = compile_schedule(
                dag, replay_winner(dag, search.log.winner), settings, contents
            )[0]
    (peak, operations), peaks = peak_run(settings.isa), []
    seconds: dict[int, list[float]] = {index: [] for index in range(len(winners))}
    with ExitStack() as stack:
        kernels = None
        if folders and environment:
            kernels = stack.enter_context(environment.serve_kernels(folders, settings.threads))
        stack.enter_context(exclusive_host())
        for _ in range(rounds):
            peaks.append(operations / time_call(peak, WINDOW_SECONDS))
            for index, search in enumerate(winners):
                time.sleep(QUIET_SECONDS)
                if index in native_runs:
                    seconds[index].append(time_call(native_runs[index], WINDOW_SECONDS))
                elif kernels is not None:
                    kernel_number = folders.index(Path(search.log.winner))
                    seconds[index].append(kernels.time_call(kernel_number, WINDOW_SECONDS))
    medians = [statistics.median(seconds[index]) for index in range(len(winners))]
    return medians, settings.threads * max(peaks)


def time_call(run: Run, window: float) -> float:
    """Return the mean seconds of the calls that fill a window of time; the first call does not count."""
    run()
    begin = time.perf_counter()
    run()
    count = max(1, int(window / (time.perf_counter() - begin)))
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begin) / count
