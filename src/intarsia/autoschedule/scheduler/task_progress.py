"""The tuning progress of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite


@dataclass(slots=True)
class TaskProgress:
    """Measurements of a task so far.

    Attributes:
        trials: Number of measured schedules.
        rounds: Number of rounds.
        best: The least cost in seconds; inf while every schedule failed.
        best_trials: Number of measured schedules when the best was found.
        history: The best cost after each round.
        is_dead: Whether it gets no more rounds.
    """

    trials: int = 0
    rounds: int = 0
    best: float = inf
    best_trials: int = 0
    history: list[float] = field(default_factory=list)
    is_dead: bool = False

    def add(self, costs: Sequence[float], rounds: int = 1) -> None:
        """Add measurements as a number of rounds; costs that are not positive numbers are failures."""
        for cost in costs:
            self.trials += 1
            if isfinite(cost) and 0 < cost < self.best:
                self.best, self.best_trials = cost, self.trials
        self.rounds += rounds
        self.history.append(self.best)

    @property
    def has_cost(self) -> bool:
        """Whether any schedule worked."""
        return isfinite(self.best)

    def gain(self, window: int) -> float:
        """Return the mean change of the best cost over the last `window` rounds; at most 0, 0 if unknown."""
        if len(self.history) <= window or not isfinite(self.history[-1 - window]):
            return 0.0
        return (self.history[-1] - self.history[-1 - window]) / window
