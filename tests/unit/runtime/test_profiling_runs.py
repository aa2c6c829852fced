"""Programs under the profilers of their kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.fake_clock import FakeClock
from tests.fake_kernels import FakeKernel, f32, fake, plan_of

from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_profiler import KernelEvent, KernelProfiler, KernelRuns, ProfiledKernel
from intarsia.runtime.plan import RunKernel
from intarsia.support.errors import CompileError, ExecutionError

X = np.ones(4, np.float32)


class Profiler:
    """Reports two kernels of 3 and 5 us in each run, which advance a clock."""

    def __init__(self, kernel: FakeKernel, clock: FakeClock) -> None:
        self._kernel, self._clock = kernel, clock
        self._runs: list[tuple[KernelEvent, ...]] = []
        self.is_stopped = False

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        start = self._clock()
        self._clock.advance(10_000)
        self._runs.append((KernelEvent(0, start, start + 3000), KernelEvent(1, start + 4000, start + 9000)))
        return self._kernel.run(inputs, outputs)

    def forget_runs(self) -> None:
        self._runs.clear()

    def stop(self) -> KernelRuns:
        self.is_stopped = True
        return KernelRuns((ProfiledKernel("first"), ProfiledKernel("second")), tuple(self._runs), ("coarse",))


class ProfiledFake(FakeKernel):
    """A kernel with that profiler."""

    clock = FakeClock()
    problem = ""

    def start_profiler(self) -> KernelProfiler:
        if self.problem:
            raise CompileError(self.problem)
        self.profiler = Profiler(self, self.clock)
        return self.profiler


def program(function: str = "double", last: str = "increment") -> tuple[Executable, ProfiledFake]:
    a, kernel = f32("a", 4), ProfiledFake(fake(function).source)
    steps = [RunKernel(number, (number,), (number + 1,)) for number in range(2)]
    exe = Executable(plan_of(steps, [a], [2], [a] * 3), [kernel, fake(last)], kernel_names=["inner", "plain"])
    return exe, kernel


def test_the_kernels_inside_and_the_others() -> None:
    exe, kernel = program()
    profile = exe.profile(X, repeats=8, warmup=2, clock=kernel.clock)
    assert [(row.part, row.kernel.name, row.calls, round(1e6 * row.seconds)) for row in profile.rows] == [
        ("inner", "first", 1, 3),
        ("inner", "second", 1, 5),
        ("plain", "plain", 1, 0),
    ]
    assert round(1e6 * profile.seconds) == 10
    assert round(1e6 * profile.overhead_seconds) == 2
    assert profile.end_to_end_seconds == 0
    assert profile.notes == ("coarse",)
    assert kernel.profiler.is_stopped
    np.testing.assert_array_equal(exe(X), X * 2 + 1)
    assert [item.name for item in profile.slices] == ["inner", "plain", "first", "second"]


def test_the_kernel_itself_runs_without_its_profiler() -> None:
    exe, kernel = program()
    exe.profile(X, repeats=3, warmup=1, clock=kernel.clock)
    before = kernel.clock()
    exe(X)
    assert kernel.clock() == before


def test_an_engine_that_refuses_to_be_profiled_has_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProfiledFake, "problem", "no counters here")
    exe, _ = program()
    profile = exe.profile(X, repeats=2)
    assert [row.kernel.name for row in profile.rows] == ["inner", "plain"]
    assert profile.notes == ("inner is one row: no counters here",)


def test_profilers_are_stopped_if_a_run_fails() -> None:
    exe, kernel = program(last="broken")
    with pytest.raises(ExecutionError):
        exe.profile(X, repeats=2)
    assert kernel.profiler.is_stopped


def test_only_the_fastest_quarter_counts() -> None:
    exe, kernel = program()
    waits = iter(
        [0, 40_000, 0, 40_000, *[0] * 4, *[90_000] * 8]
    )  # before plain and profiled runs, one by one
    run = kernel.run

    def disturbed(inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        kernel.clock.advance(next(waits))
        return run(inputs, outputs)

    exe_kernel = exe.kernels[0]
    assert exe_kernel is kernel
    kernel.run = disturbed  # type: ignore[method-assign]  # a kernel that others disturb
    profile = exe.profile(X, repeats=8, warmup=0, clock=kernel.clock)
    assert round(1e6 * profile.seconds) == 10
