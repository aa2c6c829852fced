"""Beam search: one decision at a time, with the best few points kept."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.trials import Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class Beam:
    """Decides instruction by instruction, those behind as at the start, and keeps the best (runs to its end).

    It tries at most `width` points for each choice. With a width of 1 it is greedy.

    Attributes:
        width: Number of points kept after each instruction.

    Raises:
        UsageError: None would be kept.
    """

    width: int = 4

    def __post_init__(self) -> None:
        if self.width < 1:
            raise UsageError(f"a beam of width {self.width} keeps nothing; expected at least 1")

    def search(self, trials: Trials) -> Point:
        """Search the points, and return the best one tried."""
        kept = [trials.start]
        for at, keys in enumerate(trials.choices):
            points = [(*point[:at], key, *point[at + 1 :]) for point in kept for key in keys]
            costs = trials.try_points(points)
            order = sorted(range(len(points)), key=costs.__getitem__)
            kept = [points[index] for index in order[: self.width]]
        return trials.best
