"""Tasks that are alike: what one has reached, the others may reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Final

from intarsia.autoschedule.scheduler.task_progress import TaskProgress
from intarsia.autoschedule.scheduler.task_tuner import ScheduledTask

_GOLDEN: Final = 1.618
"""Tasks whose operations differ by less than about this factor are alike."""
_ROUNDS_MORE: Final = 5
"""A slow task leaves its group when it had so many rounds more than any other."""


class SimilarityGroups:
    """Groups of tasks with one tag and about as many operations; a task may leave its group for good."""

    def __init__(self, tasks: Sequence[ScheduledTask]) -> None:
        groups: dict[tuple[str, int], set[int]] = {}
        for number, task in enumerate(tasks):
            if task.similarity_tag and task.flop_count:
                key = task.similarity_tag, int(log(task.flop_count + 1, _GOLDEN))
                groups.setdefault(key, set()).add(number)
        self._tasks = tasks
        self._groups: Mapping[int, set[int]] = {task: group for group in groups.values() for task in group}

    def group(self, number: int) -> frozenset[int]:
        """The tasks that are like a task, with itself; none if it is alone."""
        found = self._groups.get(number, set())
        return frozenset(found) if len(found) > 1 and number in found else frozenset()

    def expected_cost(self, number: int, progress: Sequence[TaskProgress], beta: float) -> float | None:
        """`beta` times the cost that a task would have with the best speed of its group; None without one."""
        speeds = [self._speed(each, progress) for each in self.group(number)]
        best = max(speeds, default=0.0)
        return beta * self._tasks[number].flop_count / best if best else None

    def update(self, number: int, progress: Sequence[TaskProgress], beta: float) -> None:
        """Take a task out of its group that had many more rounds and stayed far below the best speed."""
        group = self.group(number)
        if not group:
            return
        best = max(self._speed(each, progress) for each in group)
        others = max(progress[each].rounds for each in group if each != number)
        is_slow = self._speed(number, progress) < best / beta
        if is_slow and progress[number].rounds > _ROUNDS_MORE + others:
            self._groups[number].discard(number)

    def _speed(self, number: int, progress: Sequence[TaskProgress]) -> float:
        """Operations a second; 0 while nothing worked."""
        return self._tasks[number].flop_count / progress[number].best
