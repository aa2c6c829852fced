"""How much a search may spend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class TuningOptions:
    """When a search of one task ends (Ansor; seed ansor_minimum).

    Attributes:
        num_measure_trials: How many schedules are measured; with 0 or 1 none is, and a model decides.
        early_stopping: End when the best has not changed for more than so many trials, if any schedule works;
            None never ends early.
        num_measures_per_round: How many are measured between two searches, at most.
        seconds: No round begins later than this after the search did.
        should_stop: Asked before each round; True ends the search.

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
            found = self.num_measures_per_round
            raise UsageError(f"option num_measures_per_round is {found}; expected at least 1")

    def after(self, trials: int) -> TuningOptions:
        """What is left of them after some trials."""
        return replace(self, num_measure_trials=max(0, self.num_measure_trials - trials))
