"""What single decisions, and pairs of them, change: a model of costs that solvers complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TypeAlias

from intarsia.tune.strategy.trials import Point, Trials

Decision: TypeAlias = tuple[int, str]
"""An instruction by its place, and what is decided."""


@dataclass(frozen=True, slots=True)
class Effects:
    """The cost of a point: that of the start, plus what each decision changes, plus what pairs change.

    Attributes:
        base: Cost of the start.
        single: What a decision adds; infinite where it fails.
        pairs: What two decisions add to the sum of what each adds; infinite where they fail together.
    """

    base: float
    single: Mapping[Decision, float]
    pairs: Mapping[tuple[Decision, Decision], float]

    @classmethod
    def measure(cls, trials: Trials, between: Iterable[tuple[int, int]]) -> Effects:
        """Try the start, every point that differs from it once, and those that differ at two places.

        Args:
            trials: The space.
            between: Pairs of places, the smaller first, whose decisions may depend on each other.
        """
        start, others = trials.start, [each[1:] for each in trials.choices]
        ones = [(at, key) for at, keys in enumerate(others) for key in keys]
        twos = [
            ((left, one), (right, two))
            for left, right in between
            for one in others[left]
            for two in others[right]
        ]
        points = [start, *(_changed(start, one) for one in ones), *(_changed(start, *pair) for pair in twos)]
        trials.try_points(points)
        base = trials.try_points([start])[0]
        single = {one: _effect(trials, base, one) for one in ones}
        pairs = {
            (one, two): _effect(trials, base, one, two) - single[one] - single[two]
            if isfinite(single[one] + single[two])
            else 0.0  # one of them is ruled out by itself
            for one, two in twos
        }
        return cls(base, single, pairs)

    def effect(self, one: Decision) -> float:
        """What a decision adds; 0 for that of the start."""
        return self.single.get(one, 0.0)

    def interaction(self, one: Decision, two: Decision) -> float:
        """What two decisions add together, besides what each adds."""
        return self.pairs.get((one, two), 0.0)


def _effect(trials: Trials, base: float, *changes: Decision) -> float:
    """What was tried tells; what the limits had no room for counts as a failure."""
    (cost,) = trials.try_points([_changed(trials.start, *changes)])
    return cost - base if isfinite(base) else inf


def _changed(point: Point, *changes: Decision) -> Point:
    found = list(point)
    for at, key in changes:
        found[at] = key
    return tuple(found)
