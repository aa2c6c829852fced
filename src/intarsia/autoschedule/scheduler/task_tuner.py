"""What the scheduler tunes, as it sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from intarsia.autoschedule.task import SearchTask
from intarsia.support.errors import UsageError

SIMILARITY_TAG: Final = "auto_scheduler_task_scheduler_tag"
"""The attribute of an operator that says which tasks are alike, as the field names it."""


class TaskTuner(Protocol):
    """Searches schedules of one task."""

    def tune_round(self, n: int) -> Sequence[float]:
        """Measure up to `n` new schedules.

        Returns:
            Seconds of each that was measured, inf for a failure; none when there is nothing left to try.
        """


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """A task with what the scheduler knows of it.

    Attributes:
        tuner: What measures its schedules.
        name: What tables call it.
        weight: How often the whole model runs it.
        flop_count: Floating-point operations of one run; 0 if unknown.
        similarity_tag: Tasks with one tag and about as many operations are alike; "" is like no other.
    """

    tuner: TaskTuner
    name: str = ""
    weight: float = 1.0
    flop_count: int = 0
    similarity_tag: str = ""

    @classmethod
    def of(cls, tuner: TaskTuner, task: SearchTask, name: str = "", weight: float = 1.0) -> ScheduledTask:
        """A task with its operations and what its operators say it is like (their tags, in order)."""
        found = (op.attrs.get(SIMILARITY_TAG) for op in task.dag.ops)
        tag = "_".join(str(each) for each in found if each)
        return cls(tuner, name or task.workload_key, weight, task.dag.flop_ct, tag)

    def __post_init__(self) -> None:
        if self.weight < 0 or self.flop_count < 0:
            raise UsageError(f"weight {self.weight} and {self.flop_count} operations: expected none below 0")
