"""Simulated annealing: a random walk that accepts higher costs less and less."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf
from random import Random

from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.random_search import random_point
from intarsia.tune.strategy.trials import Neighbourhood, Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class SimulatedAnnealing:
    """Walks from neighbour to neighbour; one that costs more is taken the less often the later (anytime).

    One that costs a share d more than the present point is taken with the chance exp(-d / temperature).

    Attributes:
        seed: Seed of the random numbers.
        hot: Temperature at the start of a walk, as a share of the cost.
        cold: Temperature at the end of a walk.
        steps: Number of steps of a walk; the next walk begins at a random point.
        walks: Number of walks.

    Raises:
        UsageError: A temperature is not above 0, or it does not fall, or nothing is walked.
    """

    seed: int = 0
    hot: float = 0.3
    cold: float = 0.003
    steps: int = 64
    walks: int = 16

    def __post_init__(self) -> None:
        if not 0 < self.cold <= self.hot or self.steps < 1 or self.walks < 1:
            raise UsageError(f"{self} cannot walk", help="0 < cold <= hot, and at least one step and walk")

    def search(self, trials: Trials) -> Point:
        """The best of those tried."""
        rng, near = Random(self.seed), Neighbourhood(trials.choices)  # noqa: S311  # no secret
        point = trials.start
        trials.try_points([point])
        for _ in range(self.walks):
            self._walk(point, trials, near, rng)
            if trials.is_over:
                break
            point = random_point(trials, rng)
            trials.try_points([point])
        return trials.best

    def _walk(self, point: Point, trials: Trials, near: Neighbourhood, rng: Random) -> None:
        (cost,) = trials.try_points([point])
        for step in range(self.steps):
            candidates = near.neighbours(point)
            if not candidates or trials.is_over:
                return
            other = rng.choice(candidates)
            (other_cost,) = trials.try_points([other])
            temperature = self.hot * (self.cold / self.hot) ** (step / self.steps)
            if other_cost <= cost or (
                0 < cost < inf and rng.random() < exp((1 - other_cost / cost) / temperature)
            ):
                point, cost = other, other_cost
