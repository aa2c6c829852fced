"""The table of all tasks that callbacks get after each round."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task in the table.

    Attributes:
        name: Name of the task.
        cost: Least cost of the task in seconds; None while every schedule failed.
        flop_per_second: Floating-point operations per second at that cost; None if unknown.
        trials: Number of measured schedules.
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
        objective: Value of the objective; None while a task has no working schedule.
        trials: Number of measured schedules of all tasks.
        tuned: Number of the task that had the round.
    """

    rows: tuple[TaskRow, ...]
    objective: float | None
    trials: int
    tuned: int
