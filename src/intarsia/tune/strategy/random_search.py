"""Points at random."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.trials import Point, Trials

LISTED = 100_000
"""Spaces up to this size are shuffled; in larger ones repetitions are so rare that they are drawn again."""


@option_type
@dataclass(frozen=True, slots=True)
class RandomSearch:
    """Tries different points in random order, the start first (anytime).

    Attributes:
        seed: Seed of the order.
        batch: Points that are tried at a time.
    """

    seed: int = 0
    batch: int = 16

    def search(self, trials: Trials) -> Point:
        """The best of those tried; all are, unless the limits end it."""
        rng = Random(self.seed)  # noqa: S311  # no secret
        trials.try_points([trials.start])
        if trials.size <= LISTED:
            order = list(trials.points)
            rng.shuffle(order)
            for first in range(0, len(order), self.batch):
                trials.try_points(order[first : first + self.batch])
        while not trials.is_over:
            trials.try_points([random_point(trials, rng) for _ in range(self.batch)])
        return trials.best


def random_point(trials: Trials, rng: Random) -> Point:
    """Any point, each with the same chance."""
    return tuple(rng.choice(each) for each in trials.choices)
