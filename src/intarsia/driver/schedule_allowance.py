"""How much a search for schedules may spend, over all kernels of a model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from intarsia.support.callbacks import never


@dataclass(slots=True)
class ScheduleAllowance:
    """Seconds and trials, and the wish to stop.

    Attributes:
        seconds: No round begins later than this after the allowance was made.
        trials: So many schedules are measured, at most.
        should_stop: Asked before each round; a yes ends the search.
        clock: Seconds from any time on.
        used: Schedules that were measured.
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
        """Seconds since it was made."""
        return self.clock() - self._begun

    @property
    def fraction(self) -> float:
        """How much of it is used, from 0 to 1."""
        if not (self.trials and self.seconds):
            return 1.0
        return min(1.0, max(self.used / self.trials, self.spent / self.seconds))

    @property
    def is_over(self) -> bool:
        """Whether no more time is left, or there was a wish to stop."""
        return self.spent >= self.seconds or self.should_stop()

    def granted(self, trials: int) -> int:
        """How many of so many trials may be begun now."""
        return 0 if self.is_over else max(0, int(min(trials, self.trials - self.used)))
