"""Measure schedules as candidates on a testbed of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.result import RaceEnd
from intarsia.measure.schedules.build_schedule import build_schedule
from intarsia.measure.schedules.kernel_workload import BuildSchedule, KernelWorkload, ScheduleInput
from intarsia.measure.testbed import LocalTestbed, TestbedLimits
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.worker_pool import TaskStoppedError
from intarsia.measure.workers import Workers
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.support.callbacks import never
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import ExecutionError, StoppedError
from intarsia.toolchain.this_host import this_host

SCHEDULE_LIMITS: Final = TestbedLimits(
    build_seconds=15.0,
    run_seconds=10.0,
    turn=TimingPolicy(warmup_seconds=0.01, warmup_calls=2, min_repeat_seconds=0.004, max_seconds=0.3),
)
"""Limits of schedules: kernels are small parts of programs."""

_RACE: Final = RacePolicy(min_rounds=7, max_rounds=21)
_RACE_SECONDS: Final = 0.3
"""Seconds for each schedule of a race."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolMeasurer(ClosedOnExit):
    """Measures schedules on a testbed: builds in several workers, and runs in one while nothing is built.

    A schedule that raises, crashes, hangs or takes too much memory affects no other. Each result is compared
    with the reference (see `reference_result`) before it is timed, so no wrong schedule has a cost. Use it in
    a `with` statement: files end with it, and its workers, if they were not lent.

    Attributes:
        testbed: Testbed, with limits for schedules.
        isa: Instruction set of the code; kernels run on as many threads as the hardware of their task has
            cores. Those of tasks of a GPU run there, and are timed by its events.
        build: Function of a module that builds a schedule; workers import it by its name.
        on_measured: Callbacks that are called with each measurement of `measure` at once, so that it is kept
            however the run ends. The caller of `remeasure` reports its results, with the winner marked.
        should_stop: Stop flag, called before each run; true ends the measuring with a StoppedError.
        wall_clock: Clock that returns seconds since 1970.
    """

    testbed: LocalTestbed
    isa: Isa
    build: BuildSchedule = build_schedule
    on_measured: tuple[OnMeasured, ...] = ()
    should_stop: Callable[[], bool] = never
    wall_clock: Callable[[], float] = time.time
    _workloads: dict[SearchTask, KernelWorkload] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        isa: Isa,
        limits: TestbedLimits = SCHEDULE_LIMITS,
        *,
        workers: int | None = None,
        lent: Workers | None = None,
        build: BuildSchedule = build_schedule,
        on_measured: Sequence[OnMeasured] = (),
        on_wait: Callable[[str], None] | None = None,
        should_stop: Callable[[], bool] = never,
        parent: Path | None = None,
    ) -> Self:
        """Open a testbed.

        Args:
            isa: Instruction set; see the attribute.
            limits: Durations, sample counts and limits.
            workers: Number of parallel builds; default: the number of cores that this process may use.
            lent: Workers of another testbed of this machine, which then build and run the schedules too.
            build: Builder; see the attribute.
            on_measured: Callbacks; see the attribute.
            on_wait: Callback, called on the first wait only, with the process that holds the host; lent
                workers have their own.
            should_stop: Stop flag; see the attribute.
            parent: Parent of the testbed's folder; default: the system's folder for temporary files.
        """
        testbed = LocalTestbed.open(
            this_host(),
            workers=workers or isa.cores,
            lent=lent,
            limits=limits,
            on_wait=on_wait,
            parent=parent,
        )
        return cls(testbed, isa, build, tuple(on_measured), should_stop)

    def close(self) -> None:
        """Stop workers that are not lent, also in the middle of a task, and remove the files."""
        self.testbed.close()

    def workload(self, task: SearchTask) -> KernelWorkload:
        """Return the computation of a task as a workload of the testbed."""
        if task not in self._workloads:
            is_for_gpu = task.hardware.is_gpu
            self._workloads[task] = KernelWorkload(
                task.dag, self.isa, task.task_inputs, build=self.build, is_for_gpu=is_for_gpu
            )
        return self._workloads[task]

    def prepare(self, pairs: Sequence[tuple[SearchTask, LoopState]]) -> None:
        """Build states of several tasks in parallel, while the reference results of the tasks are computed.

        `measure` then reuses the kernels. It reports what failed here, and builds what was left out because
        `should_stop` returned true.

        Args:
            pairs: Pairs of a task and a state.
        """
        if self.should_stop():
            return
        inputs = [self._input(task, state) for task, state in pairs]
        with _stoppable(), self.testbed.building(inputs):
            for item in inputs:
                with suppress(ExecutionError):  # `measure` reports it for its task
                    self.testbed.prepare_kernel(item.workload)

    def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """See ScheduleMeasurer.measure.

        Raises:
            StoppedError: `should_stop` returned true, or the workers were stopped; see `on_measured`.
            ExecutionError: The reference result of the task cannot be computed.
        """
        inputs, results = self._inputs(task, states), list[MeasureResult]()
        with _stoppable(), closing(self.testbed.measure_schedules(inputs)) as measured:
            for state in states:
                if self.should_stop():
                    raise _stopped()
                results.append(self._result(*next(measured)))
                for callback in self.on_measured:
                    callback(task, [state], results[-1:])
        return results

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """See ScheduleMeasurer.remeasure: they race.

        Raises:
            StoppedError, ExecutionError: As `measure`.
        """
        racers = {str(number): item for number, item in enumerate(self._inputs(task, states))}
        if not racers:
            return []
        limits = RaceLimits(_RACE, _RACE_SECONDS * len(racers), self.should_stop)
        start = time.monotonic()
        with _stoppable():
            raced = self.testbed.race(racers, limits)
        if raced.result is not None and raced.result.end is RaceEnd.STOPPED:
            raise _stopped()
        seconds = (time.monotonic() - start) / len(racers)
        finished = () if raced.result is None else raced.result.candidates
        samples = {item.name: item.samples for item in finished}
        outcomes = [raced.failures.get(name) or Outcome(costs=samples[name]) for name in racers]
        return [self._result(outcome, seconds) for outcome in outcomes]

    def _inputs(self, task: SearchTask, states: Sequence[LoopState]) -> list[ScheduleInput]:
        """Return states as candidates of their task, which has its reference result."""
        workload = self.workload(task)
        if states and not self.testbed.is_prepared(workload):
            with _stoppable(), self.testbed.workers.building():
                self.testbed.prepare_kernel(workload)
        return [self._input(task, state) for state in states]

    def _input(self, task: SearchTask, state: LoopState) -> ScheduleInput:
        threads, layout = task.hardware.num_cores, task.layout_rewrite_option
        return ScheduleInput.of(self.workload(task), threads, state, layout)

    def _result(self, outcome: Outcome, seconds: float) -> MeasureResult:
        return MeasureResult(outcome.costs, outcome.error, outcome.message, seconds, self.wall_clock())


@contextmanager
def _stoppable() -> Iterator[None]:
    """Raise StoppedError if the workers were stopped; that is no failure of a schedule."""
    try:
        yield
    except (TaskStoppedError, CancelledError) as error:
        raise _stopped() from error


def _stopped() -> StoppedError:
    return StoppedError("measuring was stopped; what was measured before is kept")
