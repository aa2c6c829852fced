"""Measure schedules on worker processes of this machine: build in parallel, run one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from intarsia.autoschedule.measuring.build_schedule import BuildFunction, BuiltSchedule, build_schedule
from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.measuring.measure_options import MeasureOptions
from intarsia.autoschedule.measuring.prepared_tasks import PreparedTasks
from intarsia.autoschedule.measuring.schedule_builder import ScheduleBuilder
from intarsia.autoschedule.measuring.schedule_measurement import ScheduleMeasurement
from intarsia.autoschedule.measuring.schedule_runner import ScheduleRunner
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.testbed.local import PRELOAD
from intarsia.measure.testbed.run_folder import RunFolder
from intarsia.measure.worker_pool import TaskStoppedError
from intarsia.measure.workers import Workers
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.support.callbacks import never
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import ExecutionError, StoppedError


@dataclass(frozen=True, slots=True, eq=False)
class PoolMeasurer(ClosedOnExit):
    """Builds schedules in several workers at a time, and runs them in one worker while nothing is built.

    A schedule that raises, crashes, hangs or takes too much memory affects no other. Each result is compared
    with the reference (see `reference_result`) before it is timed, so no wrong schedule has a cost. Use it in
    a `with` statement: files end with it, and its workers, if they were not lent.

    Attributes:
        workers: Worker processes.
        builder: Builder of schedules.
        runner: Runner of built schedules.
        tasks: Files of tasks that workers read.
        folder: Folder of the tasks; removed at the end.
        batch: Number of schedules that are built before they are run, so that no build disturbs a run.
        on_measured: Callbacks that are called with each measurement of `measure` at once, so that it is kept
            however the run ends. The caller of `remeasure` reports its results, with the winner marked.
        should_stop: Stop flag, called before each run; true ends the measuring with a StoppedError.
        wall_clock: Clock that returns seconds since 1970.
        is_lent: Whether the workers are another testbed's, and go on after the end.
    """

    workers: Workers
    builder: ScheduleBuilder
    runner: ScheduleRunner
    tasks: PreparedTasks
    folder: RunFolder
    batch: int
    on_measured: tuple[OnMeasured, ...] = ()
    should_stop: Callable[[], bool] = never
    wall_clock: Callable[[], float] = time.time
    is_lent: bool = False

    @classmethod
    def open(
        cls,
        isa: Isa,
        options: MeasureOptions | None = None,
        *,
        workers: int | None = None,
        lent: Workers | None = None,
        build: BuildFunction = build_schedule,
        on_measured: Sequence[OnMeasured] = (),
        on_wait: Callable[[str], None] | None = None,
        should_stop: Callable[[], bool] = never,
        parent: Path | None = None,
    ) -> Self:
        """Create a folder, and start workers, if none are lent.

        Args:
            isa: Instruction set of the code; kernels run on as many threads as the hardware of their task has
                cores.
            options: Durations, sample counts and limits.
            workers: Number of parallel builds; default: the number of cores that this process may use.
            lent: Workers of another testbed of this machine, which then build and run the schedules too.
            build: Function of a module that builds a schedule; workers import it by its name.
            on_measured: Callbacks; see the attribute.
            on_wait: Callback, called with the process that holds the host if another process builds or times;
                lent workers have their own.
            should_stop: Stop flag; see the attribute.
            parent: Folder in which the folder is created; default: the system's folder for temporary files.
        """
        limits = MeasureOptions() if options is None else options
        folder = RunFolder.open(parent)
        tasks = folder.path / "tasks"
        tasks.mkdir()
        started = lent or Workers.start(workers or isa.cores, folder.path / "pools", PRELOAD, on_wait)
        return cls(
            started,
            ScheduleBuilder(started, build, limits),
            ScheduleRunner(started, limits),
            PreparedTasks(tasks, started, isa, limits.seed, limits.reference_seconds),
            folder,
            limits.batch,
            tuple(on_measured),
            should_stop,
            is_lent=lent is not None,
        )

    def close(self) -> None:
        """Stop workers that are not lent, also in the middle of a task, and remove the files."""
        if not self.is_lent:
            self.workers.stop()
        self.folder.close()

    def prepare(self, pairs: Sequence[tuple[SearchTask, LoopState]]) -> None:
        """Build states of several tasks in parallel, with the reference results of the tasks.

        `measure` then reuses the kernels. It builds and reports what failed here, and what was left when
        `should_stop` returned true.

        Args:
            pairs: Pairs of a task and a state.
        """

        def build(pair: tuple[SearchTask, LoopState]) -> None:
            task, state = pair
            if not self.should_stop():
                with suppress(ExecutionError):  # `measure` reports it for its task
                    self.builder.build(self.tasks.path_of(task), [state])

        with (
            _stoppable(),
            self.workers.building(),
            ThreadPoolExecutor(self.tasks.isa.cores) as threads,
        ):
            list(threads.map(build, pairs))

    def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[ScheduleMeasurement]:
        """See ScheduleMeasurer.measure.

        Raises:
            StoppedError: `should_stop` returned true, or the workers were stopped; see `on_measured`.
            ExecutionError: The reference result of the task cannot be computed.
        """
        measurements: list[ScheduleMeasurement] = []
        for first in range(0, len(states), self.batch):
            group = states[first : first + self.batch]
            path, built = self._build(task, group)
            with _stoppable(), self.workers.running():
                for state, schedule in zip(group, built, strict=True):
                    if self.should_stop():
                        raise _stopped()
                    measurements.append(self._run(path, schedule))
                    self._report(task, [state], measurements[-1:])
        return measurements

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[ScheduleMeasurement]:
        """See ScheduleMeasurer.remeasure.

        Raises:
            StoppedError, ExecutionError: As `measure`.
        """
        path, built = self._build(task, states)
        kernels = [schedule.kernel for schedule in built if schedule.kernel is not None]
        with _stoppable(), self.workers.running():
            start = time.monotonic()
            raced = iter(self.runner.run_interleaved(path, kernels) if kernels else ())
            seconds = (time.monotonic() - start) / max(1, len(kernels))
        return [
            self._measurement(schedule, schedule.outcome, 0.0)
            if schedule.kernel is None
            else self._measurement(schedule, next(raced), seconds)
            for schedule in built
        ]

    def _build(self, task: SearchTask, states: Sequence[LoopState]) -> tuple[Path, list[BuiltSchedule]]:
        """Build states; return the task's folder and the kernels."""
        with _stoppable(), self.workers.building():
            path = self.tasks.path_of(task)
            return path, self.builder.build(path, states)

    def _run(self, path: Path, built: BuiltSchedule) -> ScheduleMeasurement:
        if built.kernel is None:
            return self._measurement(built, built.outcome, 0.0)
        start = time.monotonic()
        outcome = self.runner.run(path, built.kernel)
        return self._measurement(built, outcome, time.monotonic() - start)

    def _measurement(self, built: BuiltSchedule, outcome: Outcome, seconds: float) -> ScheduleMeasurement:
        return ScheduleMeasurement(
            outcome.costs, outcome.error, outcome.message, built.seconds, seconds, self.wall_clock()
        )

    def _report(
        self, task: SearchTask, states: Sequence[LoopState], measurements: Sequence[ScheduleMeasurement]
    ) -> None:
        for callback in self.on_measured:
            callback(task, states, measurements)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Raise StoppedError if the workers were stopped; that is no failure of a schedule."""
    try:
        yield
    except (TaskStoppedError, CancelledError) as error:
        raise _stopped() from error


def _stopped() -> StoppedError:
    return StoppedError("measuring was stopped; what was measured before is kept")
