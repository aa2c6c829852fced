"""Decisions one after another, each kept only if it clearly pays."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.trials import Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class Greedy:
    """Decides instruction by instruction; leaves the first choice only for a clear gain (runs to its end).

    For many decisions that mostly change nothing, where the least of several noisy costs is often noise. It
    tries one point for each choice beyond the first.

    Attributes:
        least_gain: Part of the cost that another choice must save to be taken.

    Raises:
        UsageError: That is no part: below 0, or 1 and more.
    """

    least_gain: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.least_gain < 1:
            raise UsageError(f"the least gain is {self.least_gain}; expected 0 or more, and less than 1")

    def search(self, trials: Trials) -> Point:
        """The start, with each decision changed that was worth it; the best one tried if the start fails."""
        kept = trials.start
        (cost,) = trials.try_points([kept])
        for at, keys in enumerate(trials.choices):
            points = [(*kept[:at], key, *kept[at + 1 :]) for key in keys if key != kept[at]]
            costs = trials.try_points(points)
            best = min(range(len(points)), key=costs.__getitem__, default=None)
            if best is not None and _pays(costs[best], cost, self.least_gain):
                kept, cost = points[best], costs[best]
        return kept if isfinite(cost) else trials.best


def _pays(cost: float, before: float, least_gain: float) -> bool:
    return cost < before * (1 - least_gain) if isfinite(before) else isfinite(cost)
