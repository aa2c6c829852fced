"""How a task scheduler decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from intarsia.support.errors import UsageError

Objective: TypeAlias = Callable[[Sequence[float]], float]
"""What is to become small, from the cost of each task in seconds; 0.0 stands for one that has none yet."""


class Strategy(StrEnum):
    """Which task gets the next round."""

    GRADIENT = "gradient"
    ROUND_ROBIN = "round-robin"


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """How a task scheduler decides; numbers are Ansor's.

    Attributes:
        strategy: Where a round is expected to help most, or each in turn.
        alpha: How much the last rounds count against what is left to gain.
        beta: How much slower than a task that is alike one may stay.
        window: Over how many rounds the last gain is taken.
        trials_per_round: Schedules that a task measures in a round, at most.
        min_trials: Schedules of each task that are measured before any gradient counts.
        early_stopping: End when the objective has not improved for so many trials and each task that is alive
            has a schedule that works; None never ends early.
        per_task_early_stopping: A task is done when it has not improved for so many trials; None never.

    Raises:
        UsageError: A number is out of its range.
    """

    strategy: Strategy = Strategy.GRADIENT
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
