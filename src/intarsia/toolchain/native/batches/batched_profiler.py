"""The profiler of kernels for batches: those of the parts that a batch is run as."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_profiler import KernelRuns

if TYPE_CHECKING:
    from intarsia.toolchain.native.profiler import NativeProfiler

RunKernel: TypeAlias = Callable[[Sequence[Value], Sequence[Array]], list[Value]]
"""Runs a kernel on the parts of inputs, and writes into the parts of results."""

RunApart: TypeAlias = Callable[
    [Sequence[Value], Sequence[Array | None], Callable[[int], RunKernel]], list[Value]
]
"""Runs a batch by a function for each size of a part."""


class BatchedProfiler:
    """Runs all parts of a batch one by one, each with the profiler of its size.

    Args:
        run_apart: `BatchedKernel.run_apart` of the profiled kernel.
        profilers: Profilers by size of the batch.
    """

    def __init__(self, run_apart: RunApart, profilers: Mapping[int, NativeProfiler]) -> None:
        self._run_apart = run_apart
        self._profilers = profilers
        self._parts: list[list[int]] = []

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `KernelProfiler.run`."""
        sizes: list[int] = []

        def run_part(size: int) -> RunKernel:
            def run(inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
                sizes.append(size)
                return self._profilers[size].run(inputs, outputs)

            return run

        results = self._run_apart(inputs, outputs, run_part)
        self._parts.append(sizes)
        return results

    def forget_runs(self) -> None:
        """As `KernelProfiler.forget_runs`."""
        self._parts.clear()
        for profiler in self._profilers.values():
            profiler.forget_runs()

    def stop(self) -> KernelRuns:
        """As `KernelProfiler.stop`: kernels of all sizes that ran, each with its size in its name."""
        used = sorted({size for sizes in self._parts for size in sizes})
        by_size = {size: self._profilers[size].stop() for size in used}
        firsts = dict(
            zip(used, accumulate((len(by_size[size].kernels) for size in used), initial=0), strict=False)
        )
        left = {size: iter(runs.runs) for size, runs in by_size.items()}
        kernels = tuple(
            replace(kernel, name=f"{kernel.name} of {size}")
            for size in used
            for kernel in by_size[size].kernels
        )
        runs = tuple(
            tuple(
                replace(event, kernel=event.kernel + firsts[size])
                for size in sizes
                for event in next(left[size])
            )
            for sizes in self._parts
        )
        notes = dict.fromkeys(note for item in by_size.values() for note in item.notes)
        return KernelRuns(kernels, runs, tuple(notes))
