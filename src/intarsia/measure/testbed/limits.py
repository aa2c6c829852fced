"""Limits of what a testbed measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from intarsia.measure.schedules.kernel_timing import DEFAULT_TIMING, KernelTiming
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.worker_calls import QUICK, TURN, Timings


@dataclass(frozen=True, slots=True)
class TestbedLimits:
    """Limits of candidates.

    Attributes:
        build_seconds: Time that one build may take.
        run_seconds: Time that one run or turn may take, with loading and checking.
        memory_bytes: Memory that a build or a run may add, or None.
        policy: Timing of programs outside of races.
        times_best: A run may take this many times the shortest run of another candidate for its workload.
        least_seconds: Time that a run may take in any case.
        kernel: Timing of schedules outside of races.
        turn: Timing of turns of races.
        most_stores: Limit of the stores of a kernel's unrolled loops (see `compile_schedule`), or None. 1024
            are about as much code as a first-level cache holds, and take LLVM a third of a second.
        reference_seconds: Time that the reference result of a kernel may take.
    """

    __test__ = False  # not a test, though its name begins like one

    build_seconds: float = 120.0
    run_seconds: float = 120.0
    memory_bytes: int | None = None
    policy: TimingPolicy = QUICK
    times_best: float = 10.0
    least_seconds: float = 15.0
    kernel: KernelTiming = DEFAULT_TIMING
    turn: TimingPolicy = TURN
    most_stores: int | None = 1024
    reference_seconds: float = 300.0

    @property
    def timings(self) -> Timings:
        """Timing policies of candidates."""
        return Timings(self.policy, self.kernel, self.turn)

    @classmethod
    def of_budget(cls, seconds: float) -> Self:
        """Return limits that suit a budget: a candidate that hangs must not outlast it many times.

        A build may take longer than a run, because compile time does not predict run time. It is
        limited all the same: no other process can time anything on this host while one builds.

        Args:
            seconds: The budget of the whole run.
        """
        return cls(
            build_seconds=min(DEFAULT_LIMITS.build_seconds, max(60.0, 3 * seconds)),
            run_seconds=min(DEFAULT_LIMITS.run_seconds, max(20.0, 2 * seconds)),
        )

    def of_run(self, shortest: float | None) -> float:
        """Return the seconds that one run may take.

        Args:
            shortest: Seconds of the shortest run of a right candidate for the same workload, if there is one.
        """
        if shortest is None:
            return self.run_seconds
        return min(self.run_seconds, max(self.least_seconds, self.times_best * shortest))


DEFAULT_LIMITS: Final = TestbedLimits()
