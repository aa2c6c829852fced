"""The profiler of kernels whose engine cannot be looked into: one row with all nodes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from intarsia.runtime.kernel import Array, Kernel, Value
from intarsia.runtime.kernel_profiler import KernelEvent, KernelRuns
from intarsia.toolchain.source_graph import EngineKernel, SourceGraph
from intarsia.toolchain.source_work import describe_kernels


class WholeProfiler:
    """Times the runs of a kernel as a whole.

    Args:
        kernel: The kernel, which runs as it does without a profiler.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._runs: list[tuple[KernelEvent, ...]] = []

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `KernelProfiler.run`."""
        start = time.perf_counter_ns()
        results = self._kernel.run(inputs, outputs)
        self._runs.append((KernelEvent(0, start, time.perf_counter_ns()),))
        return results

    def forget_runs(self) -> None:
        """As `KernelProfiler.forget_runs`."""
        self._runs.clear()

    def stop(self) -> KernelRuns:
        """As `KernelProfiler.stop`."""
        source = self._kernel.source
        whole = EngineKernel(source.toolchain, frozenset(SourceGraph.of(source).nodes))
        return KernelRuns(describe_kernels(source, [whole]), tuple(self._runs))
