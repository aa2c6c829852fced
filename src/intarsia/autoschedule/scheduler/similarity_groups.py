"""Groups of similar tasks: the speed that one has reached, the others may reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Final

from intarsia.autoschedule.scheduler.task_progress import TaskProgress
from intarsia.autoschedule.scheduler.task_tuner import ScheduledTask

_GOLDEN: Final = 1.618
"""Base of the logarithmic size classes: the FLOP of similar tasks differ by less than this factor."""
_ROUNDS_MORE: Final = 5
"""A slow task leaves its group when it had this many rounds more than any other task of it."""


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
        """Return the tasks that are similar to a task, including itself; none if it is alone."""
        members = self._groups.get(number, set())
        return frozenset(members) if len(members) > 1 and number in members else frozenset()

    def expected_cost(self, number: int, progress: Sequence[TaskProgress], beta: float) -> float | None:
        """Return `beta` times the cost of a task at the best speed of its group; None without a group."""
        speeds = [self._speed(member, progress) for member in self.group(number)]
        best = max(speeds, default=0.0)
        return beta * self._tasks[number].flop_count / best if best else None

    def update(self, number: int, progress: Sequence[TaskProgress], beta: float) -> None:
        """Remove a task from its group if it had many more rounds and is still far below the best speed."""
        group = self.group(number)
        if not group:
            return
        best = max(self._speed(member, progress) for member in group)
        others = max(progress[member].rounds for member in group if member != number)
        is_slow = self._speed(number, progress) < best / beta
        if is_slow and progress[number].rounds > _ROUNDS_MORE + others:
            self._groups[number].discard(number)

    def _speed(self, number: int, progress: Sequence[TaskProgress]) -> float:
        """Return operations per second; 0 while every schedule failed."""
        return self._tasks[number].flop_count / progress[number].best
