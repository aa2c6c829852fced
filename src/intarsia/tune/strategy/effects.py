"""A model of costs from the measured effects of single decisions and of pairs, for exact solvers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TypeAlias

from intarsia.tune.strategy.trials import Point, Trials

Decision: TypeAlias = tuple[int, str]
"""The index of an instruction, and the key of its choice."""


@dataclass(frozen=True, slots=True)
class Effects:
    """The cost of a point: that of the start, plus what each decision changes, plus what pairs change.

    Attributes:
        base: Cost of the start.
        single: Cost that a decision adds; infinite where it fails.
        pairs: Cost that two decisions add beyond the sum of both; infinite where they fail together.
    """

    base: float
    single: Mapping[Decision, float]
    pairs: Mapping[tuple[Decision, Decision], float]

    @classmethod
    def measure(cls, trials: Trials, between: Iterable[tuple[int, int]]) -> Effects:
        """Try the start, every point that differs from it once, and those that differ at two places.

        Args:
            trials: The space.
            between: Pairs of instruction indices, the smaller first, with decisions that may interact.
        """
        start, others = trials.start, [keys[1:] for keys in trials.choices]
        ones = [(at, key) for at, keys in enumerate(others) for key in keys]
        twos = [
            ((left, first), (right, second))
            for left, right in between
            for first in others[left]
            for second in others[right]
        ]
        points = [
            start,
            *(_changed(start, first) for first in ones),
            *(_changed(start, *pair) for pair in twos),
        ]
        trials.try_points(points)
        base = trials.try_points([start])[0]
        single = {first: _effect(trials, base, first) for first in ones}
        pairs = {
            (first, second): _effect(trials, base, first, second) - single[first] - single[second]
            if isfinite(single[first] + single[second])
            else 0.0  # one of them fails alone: the difference would be inf - inf
            for first, second in twos
        }
        return cls(base, single, pairs)

    def effect(self, decision: Decision) -> float:
        """Return the cost that a decision adds; 0 for the start's decision."""
        return self.single.get(decision, 0.0)


def _effect(trials: Trials, base: float, *changes: Decision) -> float:
    """Return the cost that changes add to the start; infinite for a point beyond the limits."""
    (cost,) = trials.try_points([_changed(trials.start, *changes)])
    return cost - base if isfinite(base) else inf


def _changed(point: Point, *changes: Decision) -> Point:
    changed = list(point)
    for at, key in changes:
        changed[at] = key
    return tuple(changed)
