"""Runs of a program under the profilers of its toolchains, and the profile that is made of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from intarsia.runtime.chrome_trace import TraceSlice
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.kernel_profiler import (
    KernelEvent,
    KernelProfiler,
    KernelRuns,
    ProfilableKernel,
    ProfiledKernel,
    ThreadPart,
)
from intarsia.runtime.plan import ExecutionPlan
from intarsia.runtime.profile import Nanoseconds, Profile, ProfileRow
from intarsia.runtime.step_lists import kernels_of
from intarsia.runtime.timeline import Recorder, StepEvent, Timeline
from intarsia.support.errors import IntarsiaError

COPY = "copy"
"""Value of `ProfileRow.toolchain` for copies between devices."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One profiled run: its steps, and its total nanoseconds."""

    timeline: Timeline
    total: int


class ProfilingRuns:
    """Kernels of a plan with the profilers of their toolchains, and a recorder of the plan's steps.

    Args:
        plan: Plan of the program.
        kernels: Its kernels; those that the plan does not run are not profiled.
        clock: Function that returns the time in nanoseconds.
        inside: Whether the kernels inside engines are timed.
    """

    def __init__(
        self, plan: ExecutionPlan, kernels: Sequence[NamedKernel], clock: Nanoseconds, *, inside: bool
    ) -> None:
        self._clock = clock
        self._has_devices = bool(plan.devices)
        self._notes: list[str] = []
        self._profilers: dict[int, KernelProfiler] = {}
        used = kernels_of(plan)
        self._kernels = [
            self._with_profiler(number, kernel, inside=inside and number in used)
            for number, kernel in enumerate(kernels)
        ]
        self.recorder = Recorder(plan, self._kernels, clock)

    def kernels_for(self, *, is_recorded: bool) -> Sequence[NamedKernel]:
        """Return the kernels for a runner.

        Args:
            is_recorded: Whether kernels record their runs themselves, as the runner has no recorder.
        """
        return self.recorder.recorded_kernels() if is_recorded else self._kernels

    def profile(
        self, profiled: Callable[[], object], plain: Callable[[], object], repeats: int, warmup: int
    ) -> Profile:
        """Time runs with and without profilers, and stop the profilers.

        The two kinds are interleaved, so that disturbances of the machine hit both alike.

        Args:
            profiled: Function that runs the program with these kernels.
            plain: Function that runs the program without profilers.
            repeats: Number of timed runs of each kind.
            warmup: Number of runs of each kind before them.
        """
        runs, plain_times = [], []
        try:
            for _ in range(warmup):
                plain()
                profiled()
            self.recorder.take_timeline()
            for profiler in self._profilers.values():
                profiler.forget_runs()
            for _ in range(repeats):
                plain_times.append(self._time(plain))
                total = self._time(profiled)
                runs.append(_Run(self.recorder.take_timeline(), total))
        finally:
            inside = {number: profiler.stop() for number, profiler in self._profilers.items()}
        return self._profile(runs, plain_times, inside)

    def _time(self, call: Callable[[], object]) -> int:
        start = self._clock()
        call()
        return self._clock() - start

    def _with_profiler(self, number: int, kernel: NamedKernel, *, inside: bool) -> NamedKernel:
        profiled = NamedKernel(kernel.kernel, kernel.name)
        if inside and isinstance(kernel.kernel, ProfilableKernel):
            try:
                profiler = kernel.kernel.start_profiler()
            except IntarsiaError as error:
                self._notes.append(f"{kernel.name} is one row: {error.problem}")
            else:
                self._profilers[number] = profiler
                profiled.run_kernel = profiler.run
        return profiled

    def _profile(
        self, runs: Sequence[_Run], plain_times: Sequence[int], inside: Mapping[int, KernelRuns]
    ) -> Profile:
        engine_runs = {number: iter(kernel_runs.runs) for number, kernel_runs in inside.items()}
        calls = [[*self._calls(run.timeline, inside, engine_runs)] for run in runs]
        fastest = _fastest([run.total for run in runs])
        rows = _rows([calls[number] for number in fastest])
        total = sum(runs[number].total for number in fastest) / len(fastest)
        if self._has_devices:  # steps of several devices overlap
            busy = sum(runs[number].timeline.busy_nanoseconds for number in fastest) / len(fastest)
        else:
            busy = sum(row.seconds for row in rows) * 1e9
        plain_fastest = _fastest(plain_times)
        end_to_end = sum(plain_times[number] for number in plain_fastest) / len(plain_fastest)
        shown = fastest[0]
        notes = dict.fromkeys((*self._notes, *(note for item in inside.values() for note in item.notes)))
        return Profile(
            rows,
            total * 1e-9,
            (total - busy) * 1e-9,
            end_to_end * 1e-9,
            len(runs),
            (
                *runs[shown].timeline.slices,
                *(item for call in calls[shown] if call.is_inside for item in call.slices),
            ),
            tuple(notes),
        )

    def _calls(
        self,
        timeline: Timeline,
        inside: Mapping[int, KernelRuns],
        engine_runs: Mapping[int, Iterator[Sequence[KernelEvent]]],
    ) -> Iterator[_Call]:
        """Yield the calls of kernels in a run: those inside an engine, or the whole step."""
        for step in timeline.events:
            if step.is_copy:
                name = f"{step.name} to {step.device}"
                yield _Call(COPY, name, ProfiledKernel(name), step, step.start, step.end)
                continue
            plan_kernel = self._kernels[step.kernel]
            toolchain, part = plan_kernel.kernel.source.toolchain, plan_kernel.name
            if step.kernel not in inside:
                yield _Call(toolchain, part, ProfiledKernel(part), step, step.start, step.end)
                continue
            for event in next(engine_runs[step.kernel], ()):
                kernel = inside[step.kernel].kernels[event.kernel]
                yield _Call(toolchain, part, kernel, step, event.start, event.end, event.kernel, event.parts)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a kernel in one run.

    Attributes:
        toolchain: Name of the toolchain.
        part: Name of the kernel of the plan.
        kernel: The kernel.
        step: Step of the plan that it belongs to.
        start: Start in nanoseconds.
        end: End in nanoseconds.
        index: Index among the kernels inside the engine; -1 for the whole step.
        parts: Its parts on threads.
    """

    toolchain: str
    part: str
    kernel: ProfiledKernel
    step: StepEvent
    start: int
    end: int
    index: int = -1
    parts: tuple[ThreadPart, ...] = ()

    @property
    def is_inside(self) -> bool:
        """Whether it is inside an engine."""
        return self.index >= 0

    @property
    def key(self) -> tuple[int, str, int]:
        """What calls of one row have in common."""
        return self.step.kernel, self.part, self.index

    @property
    def slices(self) -> tuple[TraceSlice, ...]:
        """The call in a trace, below the step; its parts below it, and in the rows of worker threads."""
        device = self.step.device
        rows = (f"{device} worker {part.worker}" if part.worker else device for part in self.parts)
        parts = (
            TraceSlice(f"part of {self.kernel.name}", self.toolchain, row, part.start, part.end)
            for row, part in zip(rows, self.parts, strict=True)
        )
        return (self._slice, *parts)

    @property
    def _slice(self) -> TraceSlice:
        work = self.kernel.work
        details: dict[str, object] = {
            "toolchain": self.toolchain,
            "nodes": [node.name for node in self.kernel.nodes],
        }
        if work is not None:
            details |= {"flop": work.flop, "bytes": work.bytes}
        return TraceSlice(self.kernel.name, self.toolchain, self.step.device, self.start, self.end, details)


def _rows(runs: Sequence[Sequence[_Call]]) -> tuple[ProfileRow, ...]:
    """Return a row for each kernel at its place, with means over runs."""
    nanoseconds: defaultdict[tuple[int, str, int], int] = defaultdict(int)
    counts: defaultdict[tuple[int, str, int], int] = defaultdict(int)
    first: dict[tuple[int, str, int], _Call] = {}
    for call in (call for calls in runs for call in calls):
        first.setdefault(call.key, call)
        nanoseconds[call.key] += call.end - call.start
        counts[call.key] += 1
    return tuple(
        ProfileRow(
            call.toolchain,
            call.part,
            call.kernel,
            counts[key] / len(runs),
            nanoseconds[key] / len(runs) * 1e-9,
            (call.step.kernel, call.index),
        )
        for key, call in first.items()
    )


def _fastest(times: Sequence[int]) -> list[int]:
    """Return the positions of the fastest quarter of times."""
    ordered = sorted(range(len(times)), key=times.__getitem__)
    return ordered[: max(1, len(ordered) // 4)]
