"""Divides a budget of measurements among tasks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Final, TypeAlias

from intarsia.autoschedule.scheduler.scheduler_options import Objective, SchedulerOptions, Strategy
from intarsia.autoschedule.scheduler.scheduler_table import SchedulerTable, TaskRow
from intarsia.autoschedule.scheduler.similarity_groups import SimilarityGroups
from intarsia.autoschedule.scheduler.task_progress import TaskProgress
from intarsia.autoschedule.scheduler.task_tuner import ScheduledTask
from intarsia.support.errors import UsageError

OnRound: TypeAlias = Callable[[SchedulerTable], None]
"""What is told after each round."""
_STEP: Final = 1e-4
"""Part of a cost by which it is changed to see how the objective follows."""


class TaskScheduler:
    """Gives rounds of measurements to the tasks of a model, so that all of it gets fast (Ansor, section 6).

    Each task gets a first round, and as many more as its minimum of trials needs; then those that promise
    most, or each in turn. A task is dead when it has nothing left to try, when it has not improved for long,
    or when nothing worked in its first round and its minimum. The dead get no rounds: upstream may choose one
    where no live task promises anything.
    """

    def __init__(
        self,
        tasks: Sequence[ScheduledTask],
        options: SchedulerOptions | None = None,
        objective: Objective | None = None,
        rng: random.Random | None = None,
        on_round: Sequence[OnRound] = (),
    ) -> None:
        """A scheduler that has measured nothing.

        Args:
            tasks: What is tuned, at least one.
            options: How it decides.
            objective: What is to become small; else the sum of costs times weights.
            rng: For choices among equals; else one with seed 0.
            on_round: Called after each round.

        Raises:
            UsageError: There is no task.
        """
        if not tasks:
            raise UsageError("there is no task to tune; expected at least one")
        self.tasks = tuple(tasks)
        self.options = options or SchedulerOptions()
        self.progress = tuple(TaskProgress() for _ in tasks)
        self._objective = objective or self._weighted_sum
        self._rng = rng or random.Random(0)  # noqa: S311 - choices among equals, no secrets
        self._on_round = tuple(on_round)
        self._groups = SimilarityGroups(self.tasks)
        self._last = -1

    @property
    def trials(self) -> int:
        """Schedules measured of all tasks, those that were restored included."""
        return sum(each.trials for each in self.progress)

    @property
    def objective(self) -> float | None:
        """What is to become small; None while a task has no schedule that works."""
        if not all(each.has_cost for each in self.progress):
            return None
        return self._objective(_known_costs(self.progress))

    def restore(self, number: int, costs: Sequence[float]) -> None:
        """Count what was measured of a task before, in its order; inf is a failure.

        A task that has not improved for long is dead again.
        """
        if costs:
            rounds = round(len(costs) / self.options.trials_per_round)
            self.progress[number].add(costs, rounds)
            self._judge(number)

    def tune(self, trials: int) -> None:
        """Measure so many schedules; fewer if all tasks are dead, or if nothing improves any more.

        Raises:
            UsageError: There are fewer trials than tasks.
        """
        if trials < len(self.tasks):
            raise UsageError(
                f"{trials} trials for {len(self.tasks)} tasks",
                help="give each task at least one trial; hundreds are usual",
            )
        size = min(self.options.trials_per_round, trials // len(self.tasks))
        left, best, since = trials, inf, 0
        while left > 0 and (number := self._next()) is not None:
            spent = self._round(number, min(size, left))
            left -= spent
            reached = self._live_objective()
            since = 0 if reached < best else since + spent
            best = min(best, reached)
            if self._is_over(since):
                break

    def _is_over(self, since: int) -> bool:
        """Whether it ends early, so many trials after the last improvement."""
        patience = self.options.early_stopping
        if patience is None or since < patience:
            return False
        return all(each.has_cost or each.is_dead for each in self.progress)

    def _next(self) -> int | None:
        """The task that gets the next round; None if all are dead."""
        live = [number for number, each in enumerate(self.progress) if not each.is_dead]
        if not live:
            return None
        needy = [number for number in live if self._needs_more(number)]
        if needy:
            return min(needy, key=lambda number: (self.progress[number].trials, number))
        if self.options.strategy is Strategy.ROUND_ROBIN:
            return min(live, key=lambda number: (number <= self._last, number))
        gradients = {
            number: _gradient(number, self.progress, self._groups, self._objective, self.options)
            for number in live
        }
        return _steepest(gradients, self._rng)

    def _needs_more(self, number: int) -> bool:
        own = self.progress[number]
        return own.rounds == 0 or own.trials < self.options.min_trials

    def _round(self, number: int, size: int) -> int:
        costs = self.tasks[number].tuner.tune_round(size)
        if len(costs) > size:
            raise UsageError(f"a round of {size} trials measured {len(costs)}")
        own = self.progress[number]
        if costs:
            own.add(costs)
            self._groups.update(number, self.progress, self.options.beta)
            self._judge(number)
        else:
            own.is_dead = True
        self._last = number
        table = self._table(number)
        for tell in self._on_round:
            tell(table)
        return len(costs)

    def _judge(self, number: int) -> None:
        """Whether a task is dead after a round."""
        own, patience = self.progress[number], self.options.per_task_early_stopping
        has_stalled = patience is not None and own.trials - own.best_trials > patience
        if not self._needs_more(number) and (has_stalled or not own.has_cost):
            own.is_dead = True

    def _live_objective(self) -> float:
        """The objective; inf while a live task has no schedule that works."""
        if any(not each.has_cost and not each.is_dead for each in self.progress):
            return inf
        return self._objective(_known_costs(self.progress))

    def _weighted_sum(self, costs: Sequence[float]) -> float:
        return sum(task.weight * cost for task, cost in zip(self.tasks, costs, strict=True))

    def _table(self, tuned: int) -> SchedulerTable:
        rows = []
        for task, own in zip(self.tasks, self.progress, strict=True):
            cost = own.best if isfinite(own.best) else None
            speed = task.flop_count / cost if cost and task.flop_count else None
            rows.append(TaskRow(task.name, cost, speed, own.trials, own.is_dead))
        return SchedulerTable(tuple(rows), self.objective, self.trials, tuned)


def _known_costs(progress: Sequence[TaskProgress]) -> tuple[float, ...]:
    """The least cost of each task; 0.0 where nothing worked, so that others can still be compared."""
    return tuple(each.best if each.has_cost else 0.0 for each in progress)


def _gradient(
    number: int,
    progress: Sequence[TaskProgress],
    groups: SimilarityGroups,
    objective: Objective,
    options: SchedulerOptions,
) -> float:
    """How the objective is expected to change if a task gets a round; below 0 is better (Ansor, section 6).

    What the last rounds gained is mixed with what is hoped for: that the cost falls as it has on average, or
    to what a task that is alike reached. The step that shows how the objective follows a cost is relative:
    upstream's, 1e-4 seconds, makes costs of microseconds negative.
    """
    own = progress[number]
    costs = list(_known_costs(progress))
    step = _STEP * own.best
    before = objective(costs)
    costs[number] -= step
    chain = (before - objective(costs)) / step
    hoped = own.best - own.best / max(1, own.rounds)
    like = groups.expected_cost(number, progress, options.beta)
    if like is not None:
        hoped = min(hoped, like)
    forward = hoped - own.best
    return chain * (options.alpha * own.gain(options.window) + (1 - options.alpha) * forward)


def _steepest(gradients: dict[int, float], rng: random.Random) -> int:
    """The task with the least gradient; by chance if all are equal."""
    if len(set(gradients.values())) == 1:
        return rng.choice(sorted(gradients))
    return min(gradients, key=lambda number: (gradients[number], number))
