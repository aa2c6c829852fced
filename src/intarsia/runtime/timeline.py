"""Start, end and device of each step of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

from intarsia.runtime.chrome_trace import TraceSlice, chrome_trace
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.plan import Copy, ExecutionPlan, RunKernel

HOST = "host"
"""Name of the device of a program without devices."""


@dataclass(frozen=True, slots=True)
class StepEvent:
    """One step of a run.

    Attributes:
        name: Name of the kernel, or "copy" with the device that the value comes from.
        device: Name of the device that ran it.
        is_copy: Whether it is a copy between devices.
        kernel: Number of the kernel, -1 for a copy.
        start: Start in nanoseconds of the clock.
        end: End in nanoseconds of the clock.
    """

    name: str
    device: str
    is_copy: bool
    kernel: int
    start: int
    end: int

    def overlaps(self, other: StepEvent) -> bool:
        """Return whether two steps ran at the same time."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Timeline:
    """The steps of one run, by the time at which they began."""

    events: tuple[StepEvent, ...]

    @property
    def overlaps(self) -> tuple[tuple[StepEvent, StepEvent], ...]:
        """Pairs of steps on different devices that ran at the same time."""
        pairs = combinations(self.events, 2)
        return tuple(
            (one, other) for one, other in pairs if one.device != other.device and one.overlaps(other)
        )

    @property
    def busy_nanoseconds(self) -> int:
        """Nanoseconds during which at least one device ran a step."""
        busy, reached = 0, 0
        for event in self.events:
            busy += max(0, event.end - max(event.start, reached))
            reached = max(reached, event.end)
        return busy

    @property
    def slices(self) -> tuple[TraceSlice, ...]:
        """The steps as slices of a trace, one row for each device."""
        return tuple(
            TraceSlice(
                event.name, "copy" if event.is_copy else "kernel", event.device, event.start, event.end
            )
            for event in self.events
        )

    def to_chrome_trace(self) -> str:
        """Return JSON of Chrome's trace event format, one row for each device; times in microseconds."""
        return chrome_trace(self.slices)

    def __str__(self) -> str:
        """Return a table, one line for each step: start and length in microseconds, device, name."""
        first = min((event.start for event in self.events), default=0)
        return "\n".join(
            f"{(event.start - first) / 1000:12.1f} {(event.end - event.start) / 1000:10.1f} us "
            f"{event.device:8} {event.name}"
            for event in self.events
        )


class Recorder:
    """Records the start and end of steps; usable from the threads of all devices.

    Args:
        plan: Plan of the program.
        kernels: Its kernels, for their names.
        clock: Function that returns the time in nanoseconds.
    """

    def __init__(self, plan: ExecutionPlan, kernels: Sequence[NamedKernel], clock: Callable[[], int]) -> None:
        self._plan, self._kernels, self.clock = plan, kernels, clock
        self._events: list[StepEvent] = []

    @contextmanager
    def step(self, step: RunKernel | Copy, source: int | None = None) -> Iterator[None]:
        """Record a step of a plan with devices.

        Args:
            step: The step that is done in the block.
            source: Number of the device that a copy reads; if not given, that of its slot in "main".
        """
        start = self.clock()
        yield
        end = self.clock()
        devices = self._plan.devices
        if isinstance(step, Copy):
            number = self._plan.blocks["main"].slot_devices[step.source] if source is None else source
            event = StepEvent(f"copy from {devices[number]}", devices[step.device], True, -1, start, end)
        else:
            name = self._kernels[step.kernel].name
            event = StepEvent(name, devices[step.device], False, step.kernel, start, end)
        # No lock: appending to a list is atomic under the GIL.
        self._events.append(event)

    def recorded_kernels(self) -> list[NamedKernel]:
        """The kernels of a plan without devices, each of which records its runs."""
        return [self._recorded(number, kernel) for number, kernel in enumerate(self._kernels)]

    def take_timeline(self) -> Timeline:
        """Return the steps recorded since the last call, and forget them."""
        events, self._events = self._events, []
        return Timeline(tuple(sorted(events, key=lambda event: (event.start, event.end))))

    def _recorded(self, number: int, kernel: NamedKernel) -> NamedKernel:
        plain = kernel.run_kernel

        def run(inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
            start = self.clock()
            results = plain(inputs, outputs)
            self._events.append(StepEvent(kernel.name, HOST, False, number, start, self.clock()))
            return results

        recorded = NamedKernel(kernel.kernel, kernel.name)
        recorded.run_kernel = run
        return recorded
