"""Decisions that a prediction has put in order: the first ones, tried together."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.trials import Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class Prefixes:
    """Changes the first of the decisions, all of them, half of them, a quarter, ..., one (runs to its end).

    For many independent decisions that each save little and were predicted, most gain first: each takes its
    second choice, the best one by prediction. n decisions cost 2 + log2(n) trials.

    Attributes:
        least_gain: Share of the cost that changes must save to be taken.

    Raises:
        UsageError: That is no share: below 0, or 1 and more.
    """

    least_gain: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.least_gain < 1:
            raise UsageError(f"the least gain is {self.least_gain}; expected 0 or more, and less than 1")

    def search(self, trials: Trials) -> Point:
        """The start, or the prefix that costs least if it clearly pays; the best point if the start fails."""
        start = trials.start
        (cost,) = trials.try_points([start])
        count = sum(len(keys) > 1 for keys in trials.choices)
        points = []
        while count:
            points.append(_changed(trials.choices, count))
            count //= 2
        costs = dict(zip(points, trials.try_points(points), strict=True))
        best = min(costs, key=costs.__getitem__, default=start)
        if best != start and costs[best] < cost * (1 - self.least_gain):
            return best
        return start if isfinite(cost) else trials.best


def _changed(choices: tuple[tuple[str, ...], ...], count: int) -> Point:
    """Return the point with the second choice of the first `count` instructions that have one."""
    point = []
    for keys in choices:
        is_changed = count > 0 and len(keys) > 1
        count -= is_changed
        point.append(keys[1] if is_changed else keys[0])
    return tuple(point)
