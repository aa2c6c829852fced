"""Decisions as arms of bandits that learn from the costs of whole points."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log, sqrt
from random import Random

from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.random_search import random_point
from intarsia.tune.strategy.trials import Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class Bandit:
    """A bandit for each instruction: decisions with low costs, or with few trials, are drawn (anytime).

    The reward of a point is the best cost over its own, 0 for a failure. An arm's worth is the mean of its
    rewards, plus `curiosity` times the usual upper confidence bound (UCB1). A share of points is drawn around
    the best one instead, since independent arms ignore interactions between decisions.

    Attributes:
        seed: Seed of the random numbers.
        curiosity: Weight of the confidence bound.
        local: Share of points that are drawn around the best, from 0 to 1.
        most: Number of already tried points in a row after which the search ends.

    Raises:
        UsageError: A share is not from 0 to 1, or a number is too small.
    """

    seed: int = 0
    curiosity: float = 0.2
    local: float = 0.4
    most: int = 200

    def __post_init__(self) -> None:
        if not 0 <= self.local <= 1 or self.curiosity < 0 or self.most < 1:
            raise UsageError(
                f"{self} cannot learn", help="local from 0 to 1, curiosity at least 0, most at least 1"
            )

    def search(self, trials: Trials) -> Point:
        """The best of those tried."""
        rng = Random(self.seed)  # noqa: S311  # no secret
        trials.try_points([trials.start])
        repeats = 0
        while not trials.is_over and repeats < self.most:
            point = self._near_best(trials, rng) if rng.random() < self.local else self._draw(trials, rng)
            repeats = repeats + 1 if point in trials.costs else 0
            # Without a random point now and then, all arms may agree on a point that is known.
            if repeats and rng.random() < 0.5:
                point = random_point(trials, rng)
            trials.try_points([point])
        return trials.best

    def _near_best(self, trials: Trials, rng: Random) -> Point:
        """The best point with one or two decisions drawn anew."""
        point = list(trials.best)
        for _ in range(rng.choice((1, 2))):
            at = rng.randrange(len(point))
            point[at] = rng.choice(trials.choices[at])
        return tuple(point)

    def _draw(self, trials: Trials, rng: Random) -> Point:
        """Draw the decision of the highest worth for each instruction; untried ones first, ties at random."""
        count, best = len(trials.costs), trials.best_cost
        rewards: list[dict[str, list[float]]] = [{key: [] for key in keys} for keys in trials.choices]
        for point, cost in trials.costs.items():
            reward = best / cost if isfinite(cost) and cost > 0 else float(cost == best)
            for arms, key in zip(rewards, point, strict=True):
                arms[key].append(reward)

        def worth(given: list[float]) -> float:
            if not given:
                return float("inf")
            return sum(given) / len(given) + self.curiosity * sqrt(2 * log(count) / len(given))

        return tuple(max(arms, key=lambda key: (worth(arms[key]), rng.random())) for arms in rewards)
