"""All points."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.trials import Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class Exhaustive:
    """Tries every point, in order: exact, and as long as the product of all choices."""

    def search(self, trials: Trials) -> Point:
        """The best of all points, or of the first, if the limits end it."""
        trials.try_points(list(trials.points))
        return trials.best
