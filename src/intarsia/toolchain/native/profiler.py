"""The profiler of native kernels: a region with timestamps between its calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.timed_table import TimedTable
from intarsia.runtime.kernel import Array, Kernel, KernelSource, Value
from intarsia.runtime.kernel_profiler import KernelEvent, KernelRuns, ProfiledKernel
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

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `KernelProfiler.run`."""
        results = self._kernel.run(inputs, outputs)
        self._runs.append(self._timed.stamps.copy())
        return results

    def forget_runs(self) -> None:
        """As `KernelProfiler.forget_runs`."""
        self._runs.clear()

    def call_nanoseconds(self) -> npt.NDArray[Any]:
        """Return the nanoseconds of each call in each run, (runs, calls)."""
        return np.diff(np.stack(self._runs))

    def stop(self) -> KernelRuns:
        """As `KernelProfiler.stop`."""
        events = []
        for stamps in self._runs:
            times = enumerate(pairwise(stamps.tolist()))
            events.append(tuple(KernelEvent(number, start, end) for number, (start, end) in times))
        return KernelRuns(self._describe(self._kernel.source, self._region.calls), tuple(events))
