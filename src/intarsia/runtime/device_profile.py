"""Profile a program on several devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.profile import KernelTime, Profile
from intarsia.runtime.timeline import Recorder, Timeline

COPY = "copy"
"""Value of `KernelTime.toolchain` for copies between devices."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """One timed run: its steps, and its total time in nanoseconds."""

    timeline: Timeline
    total: int


def device_profile(
    kernels: Sequence[NamedKernel],
    recorder: Recorder,
    call: Callable[[], object],
    repeats: int,
    warmup: int,
) -> Profile:
    """Time `repeats` calls of a function that runs these kernels on several devices.

    Copies have rows of their own. As devices work at the same time, the rows may add up to more than the
    total;
    the overhead is the time at which no device ran a step.

    Args:
        kernels: The kernels of the plan.
        recorder: Recorder that `call` records its steps with.
        call: Function that runs the program once.
        repeats: Runs that are timed.
        warmup: Runs before them.
    """
    for _ in range(warmup):
        call()
    recorder.take_timeline()
    samples = []
    for _ in range(repeats):
        start = recorder.clock()
        call()
        total = recorder.clock() - start
        samples.append(_Sample(recorder.take_timeline(), total))
    total_time = median(sample.total for sample in samples)
    rows = [
        _row(kernel.name, kernel.kernel.source.toolchain, number, None, samples, total_time)
        for number, kernel in enumerate(kernels)
    ]
    copies = {
        (event.name, event.device): None
        for sample in samples
        for event in sample.timeline.events
        if event.is_copy
    }
    rows += [
        _row(f"{name} to {device}", COPY, -1, (name, device), samples, total_time) for name, device in copies
    ]
    idle = median(sample.total - sample.timeline.busy_nanoseconds for sample in samples)
    return Profile(tuple(rows), total_time / 1000, idle / 1000, repeats)


def _row(
    name: str,
    toolchain: str,
    kernel: int,
    copy: tuple[str, str] | None,
    samples: Sequence[_Sample],
    total: float,
) -> KernelTime:
    """Return the row of a kernel, or of the copies from one device to another."""
    lengths = [
        [
            event.end - event.start
            for event in sample.timeline.events
            if event.kernel == kernel and (copy is None or (event.name, event.device) == copy)
        ]
        for sample in samples
    ]
    spent = median(map(sum, lengths))
    return KernelTime(
        name, toolchain, median(map(len, lengths)), spent / 1000, spent / total if total else 0.0
    )
