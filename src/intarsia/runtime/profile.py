"""Profile the kernels of an executable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TypeAlias

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel

Nanoseconds: TypeAlias = Callable[[], int]
"""A clock: a function that returns the time in nanoseconds."""


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The time of one kernel in one call of the executable.

    Attributes:
        name: Name of the kernel.
        toolchain: Name of the toolchain that compiled it.
        calls: Number of runs in one call, the median over the repeats.
        microseconds: Total time of its runs in one call, the median over the repeats.
        share: Fraction of the executable's time, 0 to 1.
    """

    name: str
    toolchain: str
    calls: float
    microseconds: float
    share: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of an executable goes; all times are medians over the repeats, in microseconds.

    Attributes:
        kernels: Times of the kernels in the order of the plan.
        microseconds: Time of one call of the executable, without the check of its inputs.
        overhead_microseconds: Part of that time outside of kernels.
        repeats: Number of calls that were timed.
    """

    kernels: tuple[KernelTime, ...]
    microseconds: float
    overhead_microseconds: float
    repeats: int

    def to_json(self) -> dict[str, object]:
        """Return the profile as plain values."""
        return asdict(self) | {"kernels": [asdict(kernel) for kernel in self.kernels]}

    def __str__(self) -> str:
        """Return a table, the most expensive kernel first."""
        rows = sorted(self.kernels, key=lambda kernel: -kernel.microseconds)
        lines = [
            f"{row.microseconds:12.1f} us {row.share:6.1%} {row.calls:5g} x {row.toolchain:12} {row.name}"
            for row in rows
        ]
        lines.append(f"{self.overhead_microseconds:12.1f} us outside of kernels")
        lines.append(f"{self.microseconds:12.1f} us in all, median of {self.repeats}")
        return "\n".join(lines)


class TimedKernels:
    """Kernels that record the time of each of their runs.

    Args:
        kernels: The kernels to time.
        clock: Function that returns the time in nanoseconds.
    """

    def __init__(self, kernels: Sequence[NamedKernel], clock: Nanoseconds) -> None:
        self._plain = kernels
        self._clock = clock
        self._spent = [0] * len(kernels)
        self._calls = [0] * len(kernels)
        self.kernels = [self._timed(index, kernel) for index, kernel in enumerate(kernels)]

    def profile(self, call: Callable[[], object], repeats: int) -> Profile:
        """Time `repeats` calls of a function that runs these kernels."""
        totals, spent, calls = [], [], []
        for _ in range(repeats):
            self._spent[:] = self._calls[:] = [0] * len(self._plain)
            start = self._clock()
            call()
            totals.append(self._clock() - start)
            spent.append(tuple(self._spent))
            calls.append(tuple(self._calls))
        total = median(totals)
        overhead = median(whole - sum(parts) for whole, parts in zip(totals, spent, strict=True))
        columns = zip(self._plain, zip(*spent, strict=True), zip(*calls, strict=True), strict=True)
        rows = tuple(_row(kernel, times, counts, total) for kernel, times, counts in columns)
        return Profile(rows, total / 1000, overhead / 1000, repeats)

    def _timed(self, index: int, kernel: NamedKernel) -> NamedKernel:
        plain, clock = kernel.run_kernel, self._clock

        def run(inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
            start = clock()
            results = plain(inputs, outputs)
            self._spent[index] += clock() - start
            self._calls[index] += 1
            return results

        timed = NamedKernel(kernel.kernel, kernel.name)
        timed.run_kernel = run
        return timed


def _row(kernel: NamedKernel, times: tuple[int, ...], counts: tuple[int, ...], total: float) -> KernelTime:
    spent = median(times)
    share = spent / total if total else 0.0
    return KernelTime(kernel.name, kernel.kernel.source.toolchain, median(counts), spent / 1000, share)
