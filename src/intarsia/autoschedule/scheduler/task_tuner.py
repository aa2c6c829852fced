"""The protocol of tuners that the scheduler gives rounds to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from intarsia.autoschedule.task import SearchTask
from intarsia.support.errors import UsageError

SIMILARITY_TAG: Final = "auto_scheduler_task_scheduler_tag"
"""Operator attribute that tags similar tasks, by Ansor's name."""


class TaskTuner(Protocol):
    """Searches schedules of one task."""

    def tune_round(self, n: int) -> Sequence[float]:
        """Measure up to `n` new schedules.

        Returns:
            Seconds per call of each measured schedule, inf for a failure; empty when no schedule is left to
            try.
        """


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """A task with the facts that the scheduler uses.

    Attributes:
        tuner: Tuner that measures its schedules.
        name: Name of the task in tables.
        weight: Number of calls per run of the whole model.
        flop_count: Floating-point operations per call; 0 if unknown.
        similarity_tag: Tag of similar tasks (of about the same FLOP); "" is similar to none.
    """

    tuner: TaskTuner
    name: str = ""
    weight: float = 1.0
    flop_count: int = 0
    similarity_tag: str = ""

    @classmethod
    def of(cls, tuner: TaskTuner, task: SearchTask, name: str = "", weight: float = 1.0) -> ScheduledTask:
        """Create a task with its FLOP and the similarity tags of its operators, in order."""
        tags = (op.attrs.get(SIMILARITY_TAG) for op in task.dag.ops)
        tag = "_".join(str(name) for name in tags if name)
        return cls(tuner, name or task.workload_key, weight, task.dag.flop_ct, tag)

    def __post_init__(self) -> None:
        if self.weight < 0 or self.flop_count < 0:
            raise UsageError(f"weight {self.weight} and {self.flop_count} operations: expected none below 0")
