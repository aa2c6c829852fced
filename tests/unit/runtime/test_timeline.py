import itertools
import json

import numpy as np
from tests.device_plans import branch_kernels, two_branches
from tests.fake_kernels import f32, fake, plan_of

from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.timeline import StepEvent, Timeline

X = np.ones(8, np.float32)


def event(device: str, start: int, end: int, name: str = "k") -> StepEvent:
    return StepEvent(name, device, name.startswith("copy"), 0, start, end)


def test_overlap_is_of_different_devices_only() -> None:
    a, b, c, d = event("a", 0, 10), event("b", 5, 15), event("a", 10, 20), event("b", 20, 30)
    timeline = Timeline((a, b, c, d))
    assert timeline.overlaps == ((a, b), (b, c))
    assert timeline.busy_nanoseconds == 30


def test_idle_time_is_not_busy() -> None:
    assert Timeline((event("a", 0, 4), event("b", 1, 3), event("a", 10, 11))).busy_nanoseconds == 5
    assert Timeline(()).busy_nanoseconds == 0


def test_chrome_trace() -> None:
    timeline = Timeline((event("cpu:1", 5000, 7000), event("cpu:0", 6000, 9500, "copy from cpu:1")))
    found = json.loads(timeline.to_chrome_trace())
    rows = {item["args"]["name"]: item["tid"] for item in found["traceEvents"] if item["ph"] == "M"}
    assert rows == {"cpu:0": 0, "cpu:1": 1}
    steps = [item for item in found["traceEvents"] if item["ph"] == "X"]
    shown = [(item["name"], item["cat"], item["tid"], item["ts"], item["dur"]) for item in steps]
    assert shown == [("k", "kernel", 1, 0.0, 2.0), ("copy from cpu:1", "copy", 0, 1.0, 3.5)]


def test_the_table() -> None:
    timeline = Timeline((event("cpu:0", 5000, 7000), event("mock:0", 6000, 9500, "copy from cpu:0")))
    assert str(timeline) == (
        "         0.0        2.0 us cpu:0    k\n         1.0        3.5 us mock:0   copy from cpu:0"
    )


def test_a_run_on_several_devices() -> None:
    with Executable(two_branches(("cpu:0", "mock:0")), branch_kernels(), kernel_names=["a", "b", "c"]) as exe:
        events = exe.trace(X).events
    steps = {(step.name, step.device, step.is_copy, step.kernel) for step in events}
    assert steps == {
        ("a", "cpu:0", False, 0),
        ("b", "mock:0", False, 1),
        ("c", "cpu:0", False, 2),
        ("copy from cpu:0", "mock:0", True, -1),
        ("copy from mock:0", "cpu:0", True, -1),
    }
    assert all(step.start <= step.end for step in events)
    times = {step.name: step for step in events}
    assert times["copy from cpu:0"].end <= times["b"].start
    assert times["copy from mock:0"].end <= times["c"].start


def test_a_run_without_devices() -> None:
    a = f32("a", 8)
    steps = [RunKernel(number, (number,), (number + 1,)) for number in range(2)]
    exe = Executable(plan_of(steps, [a], [2], [a] * 3), [fake("double"), fake("increment")])
    ticks = itertools.count()
    events = exe.trace(X, clock=lambda: next(ticks)).events
    assert [(step.name, step.device, step.start, step.end) for step in events] == [
        ("kernel0", "host", 0, 1),
        ("kernel1", "host", 2, 3),
    ]


def test_the_profile_of_several_devices_has_rows_for_copies() -> None:
    with Executable(two_branches(("mock:0", "mock:1")), branch_kernels()) as exe:
        profile = exe.profile(X, repeats=3, warmup=1)
    rows = {row.kernel.name: (row.toolchain, row.calls) for row in profile.rows}
    assert rows == {
        "kernel0": ("fake", 1),
        "kernel1": ("fake", 1),
        "kernel2": ("fake", 1),
        "copy from mock:0 to mock:1": ("copy", 1),
        "copy from mock:1 to mock:0": ("copy", 1),
    }
    assert 0 <= profile.overhead_seconds <= profile.seconds
    assert all(0 < row.seconds <= profile.seconds for row in profile.rows)
