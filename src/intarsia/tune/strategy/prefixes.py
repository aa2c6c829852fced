"""Decisions that a prediction has put in order: the first ones, tried together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.isolate_failures import isolate_failures
from intarsia.tune.strategy.trials import Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class Prefixes:
    """Changes the first of the decisions, all of them, half of them, a quarter, ..., one (runs to its end).

    For many independent decisions that each save little and were predicted, most gain first: each takes its
    second choice, the best one by prediction. n decisions cost 2 + log2(n) trials.

    If all of them together fail, those that fail are looked for by halves, in 10 trials at most, and left
    out: a wrong choice of one kernel does not cost the others theirs.

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
        changed = [at for at, keys in enumerate(trials.choices) if len(keys) > 1]
        costs = _try_prefixes(changed, trials)
        together = _changed(changed, trials)
        if isfinite(cost) and changed and not isfinite(trials.costs.get(together, cost)):
            failed = _failed(changed, trials)
            costs |= _try_prefixes([at for at in changed if at not in failed], trials)
        best = min(costs, key=costs.__getitem__, default=start)
        if best != start and costs[best] < cost * (1 - self.least_gain):
            return best
        return start if isfinite(cost) else trials.best


def _try_prefixes(changed: Sequence[int], trials: Trials) -> dict[Point, float]:
    """Return the costs of the prefixes of some instructions: all, half of them, a quarter, ..., one."""
    points, count = [], len(changed)
    while count:
        points.append(_changed(changed[:count], trials))
        count //= 2
    return dict(zip(points, trials.try_points(points), strict=True))


def _failed(changed: Sequence[int], trials: Trials) -> tuple[int, ...]:
    """Return which of the instructions that fail together fail by themselves; all without time to try."""

    def works(groups: Sequence[tuple[int, ...]]) -> list[bool]:
        return list(map(isfinite, trials.try_points([_changed(group, trials) for group in groups])))

    return isolate_failures(changed, works)


def _changed(instructions: Sequence[int], trials: Trials) -> Point:
    """Return the point with the second choice of some instructions, and the first one of the others."""
    return tuple(keys[at in instructions] for at, keys in enumerate(trials.choices))
