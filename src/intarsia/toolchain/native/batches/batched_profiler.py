"""The profiler of kernels for batches: those of the parts that a batch is run as."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_profiler import KernelRuns

if TYPE_CHECKING:
    from intarsia.toolchain.native.profiler import NativeProfiler

Size = TypeVar("Size", int, tuple[int, ...])

RunKernel: TypeAlias = Callable[[Sequence[Value], Sequence[Array]], list[Value]]
"""Runs a kernel on the parts of inputs, and writes into the parts of results."""

RunApart: TypeAlias = Callable[
    [Sequence[Value], Sequence[Array | None], Callable[[Size], RunKernel]], list[Value]
]
"""Runs a batch by a function for each size of a part."""


class BatchedProfiler(Generic[Size]):
    """Runs all parts of a batch one by one, each with the profiler of its size.

    Args:
        run_apart: `BatchedKernel.run_apart` of the profiled kernel.
        profilers: Profilers by size of the batch.
    """

    def __init__(self, run_apart: RunApart[Size], profilers: Mapping[Size, NativeProfiler]) -> None:
        self._run_apart: RunApart[Size] = run_apart
        self._profilers: Mapping[Size, NativeProfiler] = profilers
        self._parts: list[list[Size]] = []

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `KernelProfiler.run`."""
        sizes: list[Size] = []

        def run_part(size: Size) -> RunKernel:
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
            replace(kernel, name=f"{kernel.name} of {_text(size)}")
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


def _text(size: int | tuple[int, ...]) -> str:
    return str(size) if isinstance(size, int) else " x ".join(map(str, size))
