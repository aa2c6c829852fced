"""Options of the task scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from intarsia.support.errors import UsageError

Objective: TypeAlias = Callable[[Sequence[float]], float]
"""Function to minimise, of the cost of each task in seconds; 0.0 stands for a task without a cost yet."""


class SchedulingStrategy(StrEnum):
    """Strategies that choose the task of the next round."""

    GRADIENT = "gradient"
    ROUND_ROBIN = "round-robin"


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Options of the task scheduler; the defaults are Ansor's.

    Attributes:
        strategy: Task with the steepest gradient, or round robin.
        alpha: Weight of the backward gradient (last rounds) against the forward one, from 0 to 1.
        beta: Factor by which a task may stay slower than similar tasks.
        window: Number of rounds over which the last gain is averaged.
        trials_per_round: Maximum number of schedules that a task measures in a round.
        min_trials: Number of schedules of each task that are measured before gradients are used.
        early_stopping: Number of trials without a better objective after which tuning ends, if each live task
            has a working schedule; None never ends early.
        per_task_early_stopping: Number of trials without a better schedule after which a task is dead; None
            for never.

    Raises:
        UsageError: A number is out of its range.
    """

    strategy: SchedulingStrategy = SchedulingStrategy.GRADIENT
    alpha: float = 0.2
    beta: float = 2.0
    window: int = 3
    trials_per_round: int = 64
    min_trials: int = 0
    early_stopping: int | None = None
    per_task_early_stopping: int | None = None

    def __post_init__(self) -> None:
        is_fine = 0 <= self.alpha <= 1 and self.beta > 0 and self.window >= 1 and self.min_trials >= 0
        if not is_fine or self.trials_per_round < 1:
            raise UsageError(
                f"scheduler options {self}: expected alpha from 0 to 1, beta above 0, a window and rounds of "
                "at least 1, and no negative number of trials"
            )
