"""Limits of the schedule search of all kernels of a model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from intarsia.support.callbacks import never


@dataclass(slots=True)
class ScheduleBudget:
    """Limits of time and trials, with a stop flag.

    Attributes:
        seconds: Seconds after creation from which on no round begins.
        trials: Maximum number of measured schedules.
        should_stop: Function that is called before each round; true ends the search.
        clock: Monotonic clock in seconds.
        used: Number of measured schedules.
    """

    seconds: float = math.inf
    trials: float = math.inf
    should_stop: Callable[[], bool] = never
    clock: Callable[[], float] = time.monotonic
    used: int = 0
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    @property
    def spent(self) -> float:
        """Seconds since creation."""
        return self.clock() - self._begun

    @property
    def fraction(self) -> float:
        """Used share of the budget, from 0 to 1."""
        if not (self.trials and self.seconds):
            return 1.0
        return min(1.0, max(self.used / self.trials, self.spent / self.seconds))

    @property
    def is_over(self) -> bool:
        """Whether the time is used up, or `should_stop` returned true."""
        return self.spent >= self.seconds or self.should_stop()

    def granted(self, trials: int) -> int:
        """Return how many of a number of trials may start now."""
        return 0 if self.is_over else max(0, int(min(trials, self.trials - self.used)))
