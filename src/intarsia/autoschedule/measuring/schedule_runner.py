"""Run built schedules in a worker process, one at a time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from intarsia.autoschedule.measuring.measure_options import MeasureOptions
from intarsia.autoschedule.measuring.run_schedule import run_interleaved, run_schedule
from intarsia.autoschedule.measuring.schedule_kernel import ScheduleKernel
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.workers import TaskLimits, Workers


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleRunner:
    """Checks and times kernels; the caller holds the host, so that nothing is built meanwhile.

    Attributes:
        workers: Worker processes; one of them runs the kernels.
        options: Durations, sample counts and limits.
        best: Seconds of the best schedule of each task, by its folder; a schedule that is hopelessly slower
            is not timed for long.
    """

    workers: Workers
    options: MeasureOptions
    best: dict[Path, float] = field(default_factory=dict)

    def run(self, path: Path, kernel: ScheduleKernel, *, by_itself: bool = False) -> Outcome:
        """Check and time a kernel; return the outcome.

        Args:
            path: Folder of the task.
            kernel: Kernel of a schedule.
            by_itself: Whether it is timed in full, however fast the best schedule is.

        Raises:
            TaskStoppedError, CancelledError, PoolBrokenError: The worker was stopped, or does not start.
        """
        best = inf if by_itself else self.best.get(path, inf)
        arguments = (path, kernel, self.options.timing, best)
        outcome = self.workers.run(run_schedule, arguments, self._limits)
        if outcome.costs:
            self.best[path] = min(self.best.get(path, inf), statistics.median(outcome.costs))
        return outcome

    def run_interleaved(self, path: Path, kernels: Sequence[ScheduleKernel]) -> list[Outcome]:
        """Check and time kernels interleaved; if that fails as a whole, run each by itself.

        Args:
            path: Folder of the task.
            kernels: Kernels of schedules.

        Raises:
            TaskStoppedError, CancelledError, PoolBrokenError: As `run`.
        """
        options = self.options
        arguments = (path, tuple(kernels), options.retiming, options.timing.operand_bytes)
        seconds = (options.run_seconds + options.retiming.max_seconds) * len(kernels)
        outcomes = self.workers.run(run_interleaved, arguments, replace(self._limits, seconds=seconds))
        if not isinstance(outcomes, Outcome):
            return outcomes
        return [self.run(path, kernel, by_itself=True) for kernel in kernels]

    @property
    def _limits(self) -> TaskLimits:
        return TaskLimits(self.options.run_seconds, self.options.memory_bytes)
