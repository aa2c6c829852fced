"""What the scheduler tells after each round."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task in the table.

    Attributes:
        name: The task.
        cost: Its least cost in seconds; None while nothing worked.
        flop_per_second: At that cost; None if that is unknown.
        trials: How many schedules were measured.
        is_dead: Whether it gets no more rounds.
    """

    name: str
    cost: float | None
    flop_per_second: float | None
    trials: int
    is_dead: bool


@dataclass(frozen=True, slots=True)
class SchedulerTable:
    """All tasks after a round.

    Attributes:
        rows: The tasks in their order.
        objective: What is to become small; None while a task has no schedule that works.
        trials: Schedules measured of all tasks.
        tuned: The task that had the round.
    """

    rows: tuple[TaskRow, ...]
    objective: float | None
    trials: int
    tuned: int
