"""How far a task has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite


@dataclass(slots=True)
class TaskProgress:
    """What was measured of a task.

    Attributes:
        trials: How many schedules were measured.
        rounds: How many rounds that were.
        best: The least cost in seconds; inf while every schedule failed.
        best_trials: How many schedules had been measured when the best was found.
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
        """Count measurements, as that many rounds; costs that are no positive numbers are failures."""
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
        """By how much the best changed in a round, over the last `window` rounds; 0 or less, 0 if unknown."""
        if len(self.history) <= window or not isfinite(self.history[-1 - window]):
            return 0.0
        return (self.history[-1] - self.history[-1 - window]) / window
