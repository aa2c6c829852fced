"""The space of a search, and the costs of the points tried so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf, prod
from typing import Final, TypeAlias

from intarsia.support.callbacks import never
from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.trace import is_cost

Point: TypeAlias = tuple[str, ...]
"""A decision for each instruction, in order."""

MOST_ESTIMATED: Final = 64
"""Largest number of points of which each is estimated; an estimate of a network takes milliseconds."""

Cost: TypeAlias = Callable[[Sequence[Point]], Sequence[float]]
"""Function from points to their costs: less is better; infinite, NaN and negative numbers are failures."""


@dataclass(eq=False)
class NothingTriedError(UsageError):
    """A search was ended before its first trial, by its limits or by a wish to stop."""


@option_type
@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When a search ends.

    Attributes:
        trials: Maximum number of points.
        seconds: Time after which no further point is tried.
    """

    trials: float = inf
    seconds: float = inf

    def __post_init__(self) -> None:
        if self.trials < 1 or self.seconds <= 0:
            raise UsageError(f"a search of {self.trials} trials in {self.seconds} s tries nothing")


class Trials:
    """Points of a space with their costs; each is paid for once.

    Attributes:
        choices: For each instruction its decisions; the first of each make the point that searches begin at.
        limits: Limits of the search.
        costs: Cost of every point that was tried, in order of trial.
    """

    def __init__(
        self,
        choices: Sequence[Sequence[str]],
        cost: Cost,
        limits: SearchLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        estimate: Callable[[Point], float] | None = None,
        should_stop: Callable[[], bool] = never,
    ) -> None:
        """Nothing is tried yet.

        Args:
            choices: For each instruction its decisions.
            cost: Function that returns the costs of points.
            limits: Limits of the search; default: none.
            clock: Function that returns seconds.
            estimate: Function that returns the expected cost of a point without measuring it; default: none.
            should_stop: Function that is called before each batch of points; true ends the search.

        Raises:
            UsageError: There is no instruction, or one without a choice.
        """
        self.choices = tuple(map(tuple, choices))
        if not self.choices or not all(self.choices):
            raise UsageError("there is nothing to decide", help="give instructions with choices")
        self.limits = limits or SearchLimits()
        self.costs: dict[Point, float] = {}
        self._cost, self._clock, self._begun = cost, clock, clock()
        self._estimate = estimate
        self._should_stop = should_stop

    @property
    def size(self) -> int:
        """Number of points of the space."""
        return prod(map(len, self.choices))

    @property
    def start(self) -> Point:
        """The first decision of each instruction."""
        return tuple(each[0] for each in self.choices)

    @property
    def points(self) -> Iterator[Point]:
        """All points: the last instruction changes fastest, or the start and then cheap estimates come first.

        Estimates take time as well: a large space has none.
        """
        points = product(*self.choices)
        if self._estimate is None or self.size > MOST_ESTIMATED:
            return points
        return iter(sorted(points, key=self._rank))

    def _rank(self, point: Point) -> tuple[bool, float]:
        assert self._estimate is not None
        is_start = point == self.start
        return not is_start, 0.0 if is_start else self._estimate(point)

    @property
    def left(self) -> float:
        """Number of points that may still be tried."""
        return min(self.limits.trials, self.size) - len(self.costs)

    @property
    def is_over(self) -> bool:
        """Whether no further point is tried."""
        is_late = self._clock() - self._begun >= self.limits.seconds
        return self.left < 1 or is_late or self._should_stop()

    def try_points(self, points: Sequence[Point]) -> list[float]:
        """Return the costs of points, after trying new ones; infinite for points beyond the limits."""
        new = list(dict.fromkeys(point for point in points if point not in self.costs))
        if new and not self.is_over:
            new = new[: int(min(self.left, len(new)))]
            costs = (cost if is_cost(cost) else inf for cost in self._cost(new))
            self.costs.update(zip(new, costs, strict=True))
        return [self.costs.get(point, inf) for point in points]

    @property
    def best(self) -> Point:
        """The point that costs least; of equal ones the one tried first.

        Raises:
            NothingTriedError: None was tried.
        """
        if not self.costs:
            raise NothingTriedError(
                "the search has ended before its first trial", help="give it more time or trials"
            )
        return min(self.costs, key=self.costs.__getitem__)

    @property
    def best_cost(self) -> float:
        """Cost of the best point; infinite if none was tried."""
        return min(self.costs.values(), default=inf)


@dataclass(slots=True)
class Neighbourhood:
    """Points that differ in one decision.

    Attributes:
        choices: For each instruction its decisions.
    """

    choices: tuple[tuple[str, ...], ...]
    _open: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._open = [at for at, each in enumerate(self.choices) if len(each) > 1]

    def neighbours(self, point: Point) -> list[Point]:
        """Return all points that differ from a point in one decision, in order."""
        return [
            (*point[:at], other, *point[at + 1 :])
            for at in self._open
            for other in self.choices[at]
            if other != point[at]
        ]
