"""Limits of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from intarsia.support.callbacks import never
from intarsia.support.errors import UsageError
from intarsia.tune.run_control import RunControl, WallMeter


@dataclass(frozen=True, slots=True)
class TuningOptions:
    """Limits of the search of one task (Ansor; seed ansor_minimum).

    Attributes:
        num_measure_trials: Number of schedules to measure; with 0 or 1 none is measured, and the model
            decides.
        early_stopping: Number of trials without a new best after which the search ends, if any schedule
            works;
            None never ends early.
        num_measures_per_round: Maximum number of schedules per round.
        seconds: Seconds after the start from which on no round begins.
        should_stop: Function that is called before each round; true ends the search.

    Raises:
        UsageError: A number is out of its range.
    """

    num_measure_trials: int = 0
    early_stopping: int | None = None
    num_measures_per_round: int = 64
    seconds: float = inf
    should_stop: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        patience = 0 if self.early_stopping is None else self.early_stopping
        if min(self.num_measure_trials, patience) < 0 or not self.seconds >= 0:
            raise UsageError(f"tuning options {self}: expected no negative number")
        if self.num_measures_per_round < 1:
            size = self.num_measures_per_round
            raise UsageError(f"option num_measures_per_round is {size}; expected at least 1")

    def control(self, meter: WallMeter) -> RunControl:
        """Return the budget of a search that begins now.

        Args:
            meter: Counts the time and the trials of the search.
        """
        return RunControl(self.seconds, self.num_measure_trials, meter, self.should_stop or never)

    def after(self, trials: int) -> TuningOptions:
        """Return the limits that are left after some trials."""
        return replace(self, num_measure_trials=max(0, self.num_measure_trials - trials))
