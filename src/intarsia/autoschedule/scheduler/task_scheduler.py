"""Division of a budget of measurements among tasks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Final, TypeAlias

from intarsia.autoschedule.scheduler.scheduler_options import Objective, SchedulerOptions, SchedulingStrategy
from intarsia.autoschedule.scheduler.scheduler_table import SchedulerTable, TaskRow
from intarsia.autoschedule.scheduler.similarity_groups import SimilarityGroups
from intarsia.autoschedule.scheduler.task_progress import TaskProgress
from intarsia.autoschedule.scheduler.task_tuner import ScheduledTask
from intarsia.support.errors import UsageError

OnRound: TypeAlias = Callable[[SchedulerTable], None]
"""Callback that is called with the table after each round."""
_STEP: Final = 1e-4
"""Relative change of a cost in the numerical derivative of the objective."""


class TaskScheduler:
    """Allocates rounds of measurements to the tasks of a model, to speed up all of it (Ansor, section 6).

    Each task gets a first round, and more until its minimum of trials; then the tasks with the steepest
    gradient, or all in turn. A task is dead when it has no schedule left to try, when it has not improved for
    long,
    or when every schedule of its first round and its minimum failed. Dead tasks get no rounds: upstream may
    choose one
    where no live task has a gradient.
    """

    def __init__(
        self,
        tasks: Sequence[ScheduledTask],
        options: SchedulerOptions | None = None,
        objective: Objective | None = None,
        rng: random.Random | None = None,
        on_round: Sequence[OnRound] = (),
    ) -> None:
        """Create a scheduler without measurements.

        Args:
            tasks: Tasks to tune, at least one.
            options: Options of the scheduler.
            objective: Function to minimise; None for the sum of costs times weights.
            rng: Source of random choices among equals; None for one with seed 0.
            on_round: Callbacks that are called after each round.

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
        """Number of measured schedules of all tasks, including restored ones."""
        return sum(task.trials for task in self.progress)

    @property
    def objective(self) -> float | None:
        """Value of the objective; None while a task has no working schedule."""
        if not all(task.has_cost for task in self.progress):
            return None
        return self._objective(_known_costs(self.progress))

    def restore(self, number: int, costs: Sequence[float]) -> None:
        """Add earlier measurements of a task, in their order; inf is a failure.

        A task that has not improved for long is dead again.
        """
        if costs:
            rounds = round(len(costs) / self.options.trials_per_round)
            self.progress[number].add(costs, rounds)
            self._update_liveness(number)

    def tune(self, trials: int) -> None:
        """Measure a number of schedules; fewer if all tasks are dead, or if tuning stops early.

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
        while left > 0 and (number := self._choose_next()) is not None:
            spent = self._tune_one_round(number, min(size, left))
            left -= spent
            reached = self._live_objective()
            since = 0 if reached < best else since + spent
            best = min(best, reached)
            if self._is_over(since):
                break

    def _is_over(self, since: int) -> bool:
        """Whether tuning stops early, `since` trials after the last improvement."""
        patience = self.options.early_stopping
        if patience is None or since < patience:
            return False
        return all(task.has_cost or task.is_dead for task in self.progress)

    def _choose_next(self) -> int | None:
        """Choose the task of the next round; None if all are dead."""
        live = [number for number, task in enumerate(self.progress) if not task.is_dead]
        if not live:
            return None
        needy = [number for number in live if self._needs_more(number)]
        if needy:
            return min(needy, key=lambda number: (self.progress[number].trials, number))
        if self.options.strategy is SchedulingStrategy.ROUND_ROBIN:
            return min(live, key=lambda number: (number <= self._last, number))
        gradients = {
            number: _gradient(number, self.progress, self._groups, self._objective, self.options)
            for number in live
        }
        return _steepest(gradients, self._rng)

    def _needs_more(self, number: int) -> bool:
        progress = self.progress[number]
        return progress.rounds == 0 or progress.trials < self.options.min_trials

    def _tune_one_round(self, number: int, size: int) -> int:
        costs = self.tasks[number].tuner.tune_round(size)
        if len(costs) > size:
            raise UsageError(f"a round of {size} trials measured {len(costs)}")
        progress = self.progress[number]
        if costs:
            progress.add(costs)
            self._groups.update(number, self.progress, self.options.beta)
            self._update_liveness(number)
        else:
            progress.is_dead = True
        self._last = number
        table = self._table(number)
        for callback in self._on_round:
            callback(table)
        return len(costs)

    def _update_liveness(self, number: int) -> None:
        """Mark a task as dead if it has stalled, or if its first round and its minimum failed."""
        progress, patience = self.progress[number], self.options.per_task_early_stopping
        has_stalled = patience is not None and progress.trials - progress.best_trials > patience
        if not self._needs_more(number) and (has_stalled or not progress.has_cost):
            progress.is_dead = True

    def _live_objective(self) -> float:
        """Return the objective; inf while a live task has no working schedule."""
        if any(not task.has_cost and not task.is_dead for task in self.progress):
            return inf
        return self._objective(_known_costs(self.progress))

    def _weighted_sum(self, costs: Sequence[float]) -> float:
        return sum(task.weight * cost for task, cost in zip(self.tasks, costs, strict=True))

    def _table(self, tuned: int) -> SchedulerTable:
        rows = []
        for task, progress in zip(self.tasks, self.progress, strict=True):
            cost = progress.best if isfinite(progress.best) else None
            speed = task.flop_count / cost if cost and task.flop_count else None
            rows.append(TaskRow(task.name, cost, speed, progress.trials, progress.is_dead))
        return SchedulerTable(tuple(rows), self.objective, self.trials, tuned)


def _known_costs(progress: Sequence[TaskProgress]) -> tuple[float, ...]:
    """Return the least cost of each task; 0.0 where all failed, so that other tasks can still be compared."""
    return tuple(task.best if task.has_cost else 0.0 for task in progress)


def _gradient(
    number: int,
    progress: Sequence[TaskProgress],
    groups: SimilarityGroups,
    objective: Objective,
    options: SchedulerOptions,
) -> float:
    """Estimate the change of the objective if a task gets a round; negative is better (Ansor, section 6).

    The backward gradient (gain of the last rounds) is mixed with the forward one: the cost falls as it has on
    average, or
    to what a similar task reached. The step of the numerical derivative is relative:
    upstream's, 1e-4 seconds, makes costs of microseconds negative.
    """
    task = progress[number]
    costs = list(_known_costs(progress))
    # A relative step keeps the shifted cost positive, whatever its magnitude.
    step = _STEP * task.best
    before = objective(costs)
    costs[number] -= step
    chain = (before - objective(costs)) / step
    expected = task.best - task.best / max(1, task.rounds)
    similar = groups.expected_cost(number, progress, options.beta)
    if similar is not None:
        expected = min(expected, similar)
    forward = expected - task.best
    return chain * (options.alpha * task.gain(options.window) + (1 - options.alpha) * forward)


def _steepest(gradients: dict[int, float], rng: random.Random) -> int:
    """Return the task with the least gradient, or a random one if all are equal."""
    if len(set(gradients.values())) == 1:
        return rng.choice(sorted(gradients))
    return min(gradients, key=lambda number: (gradients[number], number))
