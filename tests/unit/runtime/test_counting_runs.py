"""Profiles with the counters of their rows."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.fake_events import FakeEvents
from tests.fake_kernels import FakeKernel, f32, fake, plan_of

from intarsia.runtime import counting_runs
from intarsia.runtime.chrome_trace import TraceSlice
from intarsia.runtime.counting_runs import with_counters
from intarsia.runtime.executable import Executable
from intarsia.runtime.hardware_counters import EVENTS, HardwareCounters
from intarsia.runtime.kernel import Array, Kernel, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.profile import Profile

X = np.ones(4, np.float32)


class WorkingKernel(FakeKernel):
    """Counts 500 cycles in each run."""

    system = FakeEvents()

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        self.system.work(500)
        return super().run(inputs, outputs)


class SteppingKernel(WorkingKernel):
    """Has two kernels inside, of 300 and 700 cycles."""

    def run_stepwise(
        self, inputs: Sequence[Value], outputs: Sequence[Array | None], pause: Callable[[], None]
    ) -> list[Value]:
        for cycles in (300, 700):
            pause()
            self.system.work(cycles)
        pause()
        return super(WorkingKernel, self).run(inputs, outputs)


class OneKernel:
    """Runs the first of some kernels."""

    def __init__(self, kernels: Sequence[NamedKernel]) -> None:
        self._kernel = kernels[0]

    def run(self, inputs: Sequence[Value]) -> list[Value]:
        return self._kernel.run(inputs, [None])


def program_of(*kernels: Kernel) -> Executable:
    a = f32("a", 4)
    steps = [RunKernel(number, (number,), (number + 1,)) for number in range(len(kernels))]
    names = [f"kernel{number}" for number in range(len(kernels))]
    plan = plan_of(steps, [a], [len(kernels)], [a] * (len(kernels) + 1))
    return Executable(plan, kernels, kernel_names=names)


def profile_of(*kernels: Kernel, system: FakeEvents, monkeypatch: pytest.MonkeyPatch) -> Profile:
    def opened(system: None) -> HardwareCounters:
        return HardwareCounters(EVENTS[:2], fake_system)

    fake_system = system
    monkeypatch.setattr(WorkingKernel, "system", system)
    monkeypatch.setattr(counting_runs, "HardwareCounters", opened)
    return program_of(*kernels).profile(X, repeats=2, counters=True)


def test_rows_have_the_counts_of_their_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    system = FakeEvents()
    profile = profile_of(
        WorkingKernel(fake("double").source), fake("increment"), system=system, monkeypatch=monkeypatch
    )
    assert [row.counters for row in profile.rows] == [
        {"cycles": 500, "instructions": 1000},
        {"cycles": 0, "instructions": 0},
    ]
    assert profile.notes == ()
    assert system.open_files == 0
    header, *lines = profile.table().splitlines()
    assert header.split()[6:9] == ["cycles", "instructions", "toolchain"]
    assert any(re.search(r" 500 +1 k ", line) for line in lines)
    records = profile.to_json()["kernels"]
    assert isinstance(records, list)
    assert records[0]["counters"] == {"cycles": 500, "instructions": 1000}


def test_a_row_of_several_kernels_has_their_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SteppingKernel(fake("double").source)
    profile = profile_of(kernel, system=FakeEvents(), monkeypatch=monkeypatch)
    assert [row.counters for row in profile.rows] == [{"cycles": 1000, "instructions": 2000}]


def test_kernels_inside_have_their_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SteppingKernel(fake("double").source)
    profile = profile_of(kernel, system=FakeEvents(), monkeypatch=monkeypatch)
    row = profile.rows[0]
    inside = replace(profile, rows=tuple(replace(row, position=(0, index)) for index in range(2)))
    named = [NamedKernel(kernel, "kernel0")]
    counted = with_counters(inside, named, OneKernel, [X])
    assert [row.counters and row.counters["cycles"] for row in counted.rows] == [300, 700]


def test_engines_that_cannot_pause_have_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = WorkingKernel(fake("double").source)
    profile = profile_of(kernel, system=FakeEvents(), monkeypatch=monkeypatch)
    row = replace(profile.rows[0], position=(0, 3))
    named = [NamedKernel(kernel, "engine")]
    counted = with_counters(replace(profile, rows=(row,)), named, OneKernel, [X])
    assert [row.counters for row in counted.rows] == [None]
    assert counted.notes == ("all kernels of engine together: 500 cycles, 1 k instructions",)


def test_programs_with_devices_have_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profile_of(fake("double"), system=FakeEvents(), monkeypatch=monkeypatch)
    moved = replace(profile, slices=(TraceSlice("double", "kernel", "cpu:1", 0, 1),))
    (note,) = with_counters(moved, [], OneKernel, [X]).notes
    assert "not read for programs with devices" in note


def test_the_reason_why_there_are_none_is_a_note() -> None:
    profile = program_of(fake("double")).profile(X, repeats=2)
    system = FakeEvents(refused={event.name: errno.EACCES for event in EVENTS})
    counted = with_counters(profile, [], OneKernel, [X], system)
    assert [row.counters for row in counted.rows] == [None]
    (note,) = counted.notes
    assert note.startswith("hardware counters cannot be read: the system does not allow perf_event_open")
