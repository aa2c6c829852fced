"""The best schedules that searches have found, timed once more against one another."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.native_kernels import Run, peak_run
from benchmarks.native_search import SearchSettings, run_of, state_of
from benchmarks.schedule_searches import TVM, Search
from benchmarks.search_workloads import SearchWorkload
from benchmarks.tvm_environment import TvmEnvironment

from intarsia.measure.timing.host_lock import exclusive_host

QUIET_SECONDS, WINDOW_SECONDS = 0.25, 0.05
"""Threads of TVM go on waiting actively for up to 0.15 s after a call."""


def in_turns(
    found: Sequence[Search],
    workload: SearchWorkload,
    settings: SearchSettings,
    environment: TvmEnvironment | None,
    rounds: int,
) -> tuple[list[float], float]:
    """Seconds of a call of each winner, and the operations in a second that the machine reaches.

    Seconds are medians over rounds, in each of which everyone has its turn, with the peak on one thread. It
    is the best of its turns, times the threads.
    """
    folders = [Path(each.log.winner) for each in found if each.by == TVM]
    dag, contents = workload.dag(), workload.contents()
    own: dict[int, Run] = {}
    for place, each in enumerate(found):
        if each.by != TVM:
            own[place] = run_of(dag, state_of(dag, each.log.winner), settings, contents)[0]
    (peak, operations), peaks = peak_run(settings.isa), []
    seconds: dict[int, list[float]] = {place: [] for place in range(len(found))}
    with ExitStack() as stack:
        kernels = None
        if folders and environment:
            kernels = stack.enter_context(environment.serving(folders, settings.threads))
        stack.enter_context(exclusive_host())
        for _ in range(rounds):
            peaks.append(operations / mean_call(peak, WINDOW_SECONDS))
            for place, each in enumerate(found):
                time.sleep(QUIET_SECONDS)
                if place in own:
                    seconds[place].append(mean_call(own[place], WINDOW_SECONDS))
                elif kernels is not None:
                    index = folders.index(Path(each.log.winner))
                    seconds[place].append(kernels.seconds(index, WINDOW_SECONDS))
    medians = [statistics.median(seconds[place]) for place in range(len(found))]
    return medians, settings.threads * max(peaks)


def mean_call(run: Run, window: float) -> float:
    """Seconds of a call, the mean of as many as fill a window of time; the first one does not count."""
    run()
    begin = time.perf_counter()
    run()
    count = max(1, int(window / (time.perf_counter() - begin)))
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begin) / count
