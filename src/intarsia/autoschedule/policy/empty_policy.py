"""A policy that measures the default loops only."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.policy.tuning_options import TuningOptions
from intarsia.autoschedule.scheduler import TaskProgress
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound
from intarsia.tune.run_control import WallMeter


class EmptyPolicy:
    """Measures the loops as declared, repeatedly (seed ansor_minimum).

    Attributes:
        task: Search task.
    """

    def __init__(
        self,
        task: SearchTask,
        measurer: ScheduleMeasurer,
        on_measured: Sequence[OnMeasured] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a policy without measurements.

        Args:
            task: Search task.
            measurer: Measurer of schedules.
            on_measured: Callbacks that are called with each round's measurements.
            clock: Monotonic clock in seconds.
        """
        self.task = task
        self._measurer = measurer
        self._on_measured = tuple(on_measured)
        self._clock = clock
        self._progress = TaskProgress()

    @property
    def best_state(self) -> LoopState | None:
        """The loops as declared; None while every measurement failed."""
        return self._state() if self._progress.has_cost else None

    @property
    def best_cost(self) -> float:
        """Least cost of the loops in seconds; inf while every measurement failed."""
        return self._progress.best

    @property
    def trials(self) -> int:
        """Number of measurements."""
        return self._progress.trials

    def search(self, options: TuningOptions) -> LoopState | None:
        """Measure once per trial; with 0 or 1 trials measure nothing, and return the loops."""
        if options.num_measure_trials <= 1:
            return self._state()
        meter = WallMeter(self._clock)
        control = options.control(meter)
        while size := control.granted(options.num_measures_per_round):
            meter.trials += len(self.tune_round(size))
            if self._has_stalled(options.early_stopping):
                break
        return self.best_state

    def tune_round(self, n: int) -> list[float]:
        """Measure `n` times; return the seconds of each measurement, inf for a failure."""
        states = [self._state()] * n
        measurements = self._measurer.measure(self.task, states)
        for on_measured in self._on_measured:
            on_measured(self.task, states, measurements)
        costs = [measurement.cost for measurement in measurements]
        self._progress.add(costs)
        return costs

    def _has_stalled(self, patience: int | None) -> bool:
        progress = self._progress
        return (
            patience is not None and progress.has_cost and progress.trials - progress.best_trials > patience
        )

    def _state(self) -> LoopState:
        return infer_bound(self.task.dag, LoopState.initial(self.task.dag))
