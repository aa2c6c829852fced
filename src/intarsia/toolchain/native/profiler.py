"""The profiler of native kernels: a region with timestamps between its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.timed_table import TimedTable, sorted_parts
from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.runtime.kernel_profiler import KernelEvent, KernelRuns, ProfiledKernel, ThreadPart
from intarsia.toolchain.native.region import NativeRegion, RegionCall

DescribeCalls: TypeAlias = Callable[[KernelSource, Sequence[RegionCall]], tuple[ProfiledKernel, ...]]
"""Function that describes the kernels of a region for a profile, from its source and its calls."""


class NativeProfiler:
    """Runs a region and records the start and end of each call.

    Args:
        kernel: Kernel that runs the timed table, on the arrays of the profiled kernel.
        region: The region.
        timed: The timed table.
        describe: Function that describes the region's kernels.
    """

    def __init__(
        self, kernel: Kernel, region: NativeRegion, timed: TimedTable, describe: DescribeCalls
    ) -> None:
        self._describe = describe
        self._kernel = kernel
        self._region = region
        self._timed = timed
        self._runs: list[npt.NDArray[Any]] = []
        self._parts: list[_LoggedParts] = []

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `KernelProfiler.run`."""
        results = self._kernel.run(inputs, outputs)
        self._runs.append(self._timed.stamps.copy())
        log = self._timed.log
        if log is not None:
            self._parts.append(_LoggedParts(log.caller, log.records(), log.count))
        return results

    def forget_runs(self) -> None:
        """As `KernelProfiler.forget_runs`."""
        self._runs.clear()
        self._parts.clear()

    def call_nanoseconds(self) -> npt.NDArray[Any]:
        """Return the nanoseconds of each call in each run, (runs, calls)."""
        return np.diff(np.stack(self._runs))

    def stop(self) -> KernelRuns:
        """As `KernelProfiler.stop`."""
        workers = _numbers_of_workers(self._parts)
        events = []
        for stamps, logged in zip_longest(self._runs, self._parts):
            none = [()] * len(self._region.calls)
            parts = none if logged is None else _parts_of_calls(stamps, logged, workers)
            times = enumerate(zip(pairwise(stamps.tolist()), parts, strict=True))
            events.append(tuple(KernelEvent(number, *span, inside) for number, (span, inside) in times))
        missing = max((logged.count - len(logged.parts) for logged in self._parts), default=0)
        notes = (f"{missing} parts of parallel loops are not in the trace",) if missing else ()
        return KernelRuns(self._describe(self._kernel.source, self._region.calls), tuple(events), notes)


@dataclass(frozen=True, slots=True)
class _LoggedParts:
    """The parts of the parallel loops of one run.

    Attributes:
        caller: Number that the system gives to the calling thread.
        parts: Number of the thread, start and end of each part, (parts, 3).
        count: Number of parts, with those that the log did not hold.
    """

    caller: int
    parts: npt.NDArray[Any]
    count: int


def _numbers_of_workers(runs: Sequence[_LoggedParts]) -> dict[int, int]:
    """Return the number of each thread, from 1, by the number that the system gives to it; callers are 0."""
    callers = {logged.caller for logged in runs}
    threads = {int(thread) for logged in runs for thread in np.unique(logged.parts[:, 0])}
    numbered = {thread: number for number, thread in enumerate(sorted(threads - callers), 1)}
    return dict.fromkeys(callers, 0) | numbered


def _parts_of_calls(
    stamps: npt.NDArray[Any], logged: _LoggedParts, workers: Mapping[int, int]
) -> list[tuple[ThreadPart, ...]]:
    """Return the parts that began during each call."""
    ordered = sorted_parts(logged.parts)
    borders = np.searchsorted(ordered[:, 1], stamps)
    rows = ordered.tolist()
    return [
        tuple(ThreadPart(workers[thread], start, end) for thread, start, end in rows[first:last])
        for first, last in pairwise(borders.tolist())
    ]
