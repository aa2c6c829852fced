"""Where a round is expected to help most."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from intarsia.autoschedule.scheduler.scheduler_options import Objective, SchedulerOptions
from intarsia.autoschedule.scheduler.similarity_groups import SimilarityGroups
from intarsia.autoschedule.scheduler.task_progress import TaskProgress

_STEP: Final = 1e-4
"""Part of a cost by which it is changed to see how the objective follows."""


def known_costs(progress: Sequence[TaskProgress]) -> tuple[float, ...]:
    """The least cost of each task; 0.0 where nothing worked, so that others can still be compared."""
    return tuple(each.best if each.has_cost else 0.0 for each in progress)


def gradient(
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
    costs = list(known_costs(progress))
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


def steepest(gradients: dict[int, float], rng: random.Random) -> int:
    """The task with the least gradient; by chance if all are equal."""
    if len(set(gradients.values())) == 1:
        return rng.choice(sorted(gradients))
    return min(gradients, key=lambda number: (gradients[number], number))
