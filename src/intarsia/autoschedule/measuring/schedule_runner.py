"""Running built schedules in a worker process, one at a time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from intarsia.autoschedule.measuring.measure_options import MeasureOptions
from intarsia.autoschedule.measuring.run_schedule import run_in_turns, run_schedule
from intarsia.autoschedule.measuring.schedule_kernel import ScheduleKernel
from intarsia.autoschedule.measuring.worker_failure import worker_failure
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.worker_pool import Task, WorkerPool


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleRunner:
    """Checks and times kernels; nothing is built meanwhile, and whoever calls this has the host to itself.

    Attributes:
        pool: Where they run; a pool of one worker.
        options: How they are timed, and with what limits.
        best: Seconds of the best schedule of each task, by its folder: what is hopeless beside it is not
            timed for long.
    """

    pool: WorkerPool
    options: MeasureOptions
    best: dict[Path, float] = field(default_factory=dict)

    def run(self, path: Path, kernel: ScheduleKernel, *, by_itself: bool = False) -> Outcome:
        """How the run of one kernel ended.

        Args:
            path: Folder of the task.
            kernel: Of a schedule.
            by_itself: Whether it is timed in full, however good others are.

        Raises:
            TaskStoppedError, CancelledError, PoolBrokenError: The worker was stopped, or does not start.
        """
        best = inf if by_itself else self.best.get(path, inf)
        arguments = (path, kernel, self.options.timing, best)
        limits = self.options
        task = Task(run_schedule, arguments, timeout_s=limits.run_seconds, memory_bytes=limits.memory_bytes)
        future = self.pool.submit_task(task)
        outcome = worker_failure(future, MeasureError.RUN_TIMEOUT) or future.result()
        if outcome.costs:
            self.best[path] = min(self.best.get(path, inf), statistics.median(outcome.costs))
        return outcome

    def run_in_turns(self, path: Path, kernels: Sequence[ScheduleKernel]) -> list[Outcome]:
        """How kernels that run in turns ended, each; if all fail together, each is run by itself.

        Args:
            path: Folder of the task.
            kernels: Of schedules.

        Raises:
            TaskStoppedError, CancelledError, PoolBrokenError: As `run`.
        """
        limits = self.options
        task = Task(
            run_in_turns,
            (path, tuple(kernels), limits.retiming, limits.timing.operand_bytes),
            timeout_s=(limits.run_seconds + limits.retiming.max_seconds) * len(kernels),
            memory_bytes=limits.memory_bytes,
        )
        future = self.pool.submit_task(task)
        if worker_failure(future, MeasureError.RUN_TIMEOUT) is None:
            return future.result()
        return [self.run(path, kernel, by_itself=True) for kernel in kernels]
