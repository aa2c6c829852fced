"""Measuring schedules on worker processes of this machine: built side by side, run one at a time."""

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
    """Builds schedules in several workers at a time, and runs them in one, while nothing is built.

    A schedule that raises, crashes, hangs or takes too much memory costs itself only. Each result is compared
    with the reference (see `reference_result`) before it is timed, so no wrong schedule has a cost. Use it in
    a `with` statement: workers and files end with it.

    Attributes:
        workers: Worker processes.
        builder: Builds schedules.
        runner: Runs what was built.
        tasks: What workers read of tasks.
        folder: Holds tasks; removed at the end.
        batch: So many are built before they are run, so that no build disturbs a run.
        on_measured: Callbacks that are called with each measurement of `measure` at once, so that it is kept
            however this ends. Those of `remeasure` are reported by its caller, with the winner marked.
        should_stop: Asked before each run; where it is true, measuring ends with a StoppedError.
        wall_clock: Seconds since 1970.
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

    @classmethod
    def open(
        cls,
        isa: Isa,
        options: MeasureOptions | None = None,
        *,
        workers: int | None = None,
        build: BuildFunction = build_schedule,
        on_measured: Sequence[OnMeasured] = (),
        on_wait: Callable[[str], None] | None = None,
        should_stop: Callable[[], bool] = never,
        parent: Path | None = None,
    ) -> Self:
        """Make a folder, and start workers.

        Args:
            isa: What code may use; kernels run on as many threads as the hardware of their task has cores.
            options: How long, how often, with what limits.
            workers: Builds at a time; default: as many as there are cores for us.
            build: What builds a schedule: a function of a module, found there by workers.
            on_measured: As the attribute.
            on_wait: Called, with the process that holds the host, if another process builds or times.
            should_stop: As the attribute.
            parent: Where the folder is made; default: the system's folder for temporary files.
        """
        limits = MeasureOptions() if options is None else options
        folder = RunFolder.open(parent)
        tasks = folder.path / "tasks"
        tasks.mkdir()
        started = Workers.start(workers or isa.cores, folder.path / "pools", PRELOAD, on_wait)
        return cls(
            started,
            ScheduleBuilder(started, build, limits),
            ScheduleRunner(started, limits),
            PreparedTasks(tasks, started, isa, limits.seed, limits.reference_seconds),
            folder,
            limits.batch,
            tuple(on_measured),
            should_stop,
        )

    def close(self) -> None:
        """End the workers, whatever they do, and remove the files."""
        self.workers.stop()
        self.folder.close()

    def prepare(self, pairs: Sequence[tuple[SearchTask, LoopState]]) -> None:
        """Build states of several tasks side by side, with the reference results of the tasks.

        `measure` then finds them built. What cannot be prepared is left to it, and so is what is left when
        `should_stop` returns true.

        Args:
            pairs: Tasks, each with a state.
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
            StoppedError: `should_stop` says so, or the workers were stopped; see `on_measured`.
            ExecutionError: The reference result of the task cannot be computed.
        """
        found: list[ScheduleMeasurement] = []
        for first in range(0, len(states), self.batch):
            group = states[first : first + self.batch]
            path, built = self._built(task, group)
            with _stoppable(), self.workers.running():
                for state, each in zip(group, built, strict=True):
                    if self.should_stop():
                        raise _stopped()
                    found.append(self._run(path, each))
                    self._tell(task, [state], found[-1:])
        return found

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[ScheduleMeasurement]:
        """See ScheduleMeasurer.remeasure.

        Raises:
            StoppedError, ExecutionError: As `measure`.
        """
        path, built = self._built(task, states)
        kernels = [each.kernel for each in built if each.kernel is not None]
        with _stoppable(), self.workers.running():
            start = time.monotonic()
            raced = iter(self.runner.run_in_turns(path, kernels) if kernels else ())
            seconds = (time.monotonic() - start) / max(1, len(kernels))
        return [
            self._measurement(each, each.outcome, 0.0)
            if each.kernel is None
            else self._measurement(each, next(raced), seconds)
            for each in built
        ]

    def _built(self, task: SearchTask, states: Sequence[LoopState]) -> tuple[Path, list[BuiltSchedule]]:
        """The task's folder, and the kernels."""
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

    def _tell(
        self, task: SearchTask, states: Sequence[LoopState], found: Sequence[ScheduleMeasurement]
    ) -> None:
        for tell in self.on_measured:
            tell(task, states, found)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Workers that were stopped end the measuring, and say nothing of a schedule."""
    try:
        yield
    except (TaskStoppedError, CancelledError) as error:
        raise _stopped() from error


def _stopped() -> StoppedError:
    return StoppedError("measuring was stopped; what was measured before is kept")
