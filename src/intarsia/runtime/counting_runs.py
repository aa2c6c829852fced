"""Runs of a program that read hardware counters around each kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, TypeAlias, runtime_checkable

from intarsia.runtime.hardware_counters import EventSystem, HardwareCounters
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.profile import Profile
from intarsia.runtime.profile_table import amount_text
from intarsia.runtime.timeline import HOST
from intarsia.support.errors import UsageError

WHOLE_KERNEL: Final = -1
"""Index of the counts of a whole kernel of the plan."""

_REPEATS: Final = 5
"""Number of runs with counters; counts vary less than times."""

Counts: TypeAlias = Mapping[str, float]
"""Counts by the name of the event."""


@runtime_checkable
class CountableKernel(Protocol):
    """A kernel that can pause between the kernels inside it."""

    def run_stepwise(
        self, inputs: Sequence[Value], outputs: Sequence[Array | None], pause: Callable[[], None]
    ) -> list[Value]:
        """Compute the outputs as `Kernel.run`; `pause` is called before each kernel and behind the last."""


class Counters(Protocol):
    """What is counted (`hardware_counters.HardwareCounters`)."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the events."""

    def read(self) -> tuple[float, ...]:
        """Return the counts until now."""


class ProgramRunner(Protocol):
    """Runs a program, as the runners of plans."""

    def run(self, inputs: Sequence[Value], /) -> object:
        """Return the results."""


class CountingRuns:
    """Kernels of a plan that read counters before and after they run, or before each kernel inside.

    Reading takes microseconds and some thousand instructions, so these runs are not those that are timed.
    What two readings in succession count is taken off.

    Args:
        kernels: Kernels of the plan.
        counters: The counters.
    """

    def __init__(self, kernels: Sequence[NamedKernel], counters: Counters) -> None:
        self._counters = counters
        self._names = counters.names
        self._sums: defaultdict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0] * len(self._names))
        self._runs = 0
        first, second = counters.read(), counters.read()
        self._cost = [after - before for before, after in zip(first, second, strict=True)]
        self.kernels = [self._counted(number, kernel) for number, kernel in enumerate(kernels)]

    def run(self, program: Callable[[], object], repeats: int) -> None:
        """Run a program that uses `kernels` once to warm up, and so often with counts."""
        program()
        self._sums.clear()
        for _ in range(repeats):
            program()
        self._runs += repeats

    def counts(self) -> dict[tuple[int, int], Counts]:
        """Return mean counts of a run, by the number of the kernel and the index of the kernel inside it."""
        return {
            key: {name: max(0.0, total / self._runs) for name, total in zip(self._names, sums, strict=True)}
            for key, sums in self._sums.items()
        }

    def _counted(self, number: int, kernel: NamedKernel) -> NamedKernel:
        plain = kernel.run_kernel

        def run(inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
            readings: list[tuple[float, ...]] = []

            def pause() -> None:
                readings.append(self._counters.read())

            if isinstance(kernel.kernel, CountableKernel):
                results = kernel.kernel.run_stepwise(inputs, outputs, pause)
                self._add(number, readings, is_inside=True)
                return results
            pause()
            results = plain(inputs, outputs)
            pause()
            self._add(number, readings, is_inside=False)
            return results

        counted = NamedKernel(kernel.kernel, kernel.name)
        counted.run_kernel = run
        return counted

    def _add(self, number: int, readings: Sequence[tuple[float, ...]], *, is_inside: bool) -> None:
        for index in range(len(readings) - 1):
            sums = self._sums[number, index if is_inside else WHOLE_KERNEL]
            for event, cost in enumerate(self._cost):
                sums[event] += readings[index + 1][event] - readings[index][event] - cost


def with_counters(
    profile: Profile,
    kernels: Sequence[NamedKernel],
    new_runner: Callable[[Sequence[NamedKernel]], ProgramRunner],
    inputs: Sequence[Value],
    system: EventSystem | None = None,
) -> Profile:
    """Return a profile with the hardware counters of its rows, or with a note why there are none.

    Args:
        profile: The profile.
        kernels: Kernels of the plan.
        new_runner: Function that returns a runner of the plan with other kernels.
        inputs: Inputs of the program.
        system: The operating system.
    """
    if any(item.row != HOST for item in profile.slices):  # devices, whose threads work at the same time
        note = "hardware counters are those of all threads, and not read for programs with devices"
        return replace(profile, notes=(*profile.notes, note))
    try:
        counters = HardwareCounters(system=system)
    except UsageError as error:
        return replace(profile, notes=(*profile.notes, error.problem))
    try:
        runs = CountingRuns(kernels, counters)
        runs.run(partial(new_runner(runs.kernels).run, inputs), _REPEATS)
    finally:
        counters.close()
    counts = runs.counts()
    for kernel in {number for number, _ in counts}:
        counts.setdefault((kernel, WHOLE_KERNEL), _sum_of_kernel(counts, kernel))
    rows = tuple(replace(row, counters=counts.get(row.position)) for row in profile.rows)
    with_counts = {row.position[0] for row in rows if row.counters is not None}
    notes = [
        f"all kernels of {kernel.name} together: {_counts_text(counts[number, WHOLE_KERNEL])}"
        for number, kernel in enumerate(kernels)
        if number not in with_counts and (number, WHOLE_KERNEL) in counts
    ]
    return replace(profile, rows=rows, notes=(*profile.notes, *notes))


def _sum_of_kernel(counts: Mapping[tuple[int, int], Counts], kernel: int) -> Counts:
    """Return the sum of the counts of the kernels inside a kernel of the plan."""
    inside = [values for (number, _), values in counts.items() if number == kernel]
    return {name: sum(values[name] for values in inside) for name in inside[0]}


def _counts_text(counts: Counts) -> str:
    return ", ".join(f"{amount_text(value)} {name}" for name, value in counts.items())
