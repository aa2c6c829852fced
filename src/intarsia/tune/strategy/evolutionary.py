"""Populations of points."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.support.errors import UsageError
from intarsia.transform.option_type import option_type
from intarsia.tune.strategy.random_search import random_point
from intarsia.tune.strategy.trials import Point, Trials


@option_type
@dataclass(frozen=True, slots=True)
class EvolutionarySearch:
    """The better points have children, which mix their decisions and change some (anytime).

    Each generation keeps its best. When a generation brings nothing that was not tried, random points join.

    Attributes:
        seed: Seed of the random numbers.
        population: Number of points of a generation.
        kept: Number of best points so far that are parents.
        mutation: Probability that a decision of a child is drawn at random.
        generations: Number of generations.

    Raises:
        UsageError: A number is too small.
    """

    seed: int = 0
    population: int = 16
    kept: int = 6
    mutation: float = 0.15
    generations: int = 64

    def __post_init__(self) -> None:
        if not 2 <= self.kept <= self.population or self.generations < 1 or not 0 <= self.mutation <= 1:
            raise UsageError(f"{self} cannot evolve", help="2 <= kept <= population, mutation from 0 to 1")

    def search(self, trials: Trials) -> Point:
        """The best of those tried."""
        rng = Random(self.seed)  # noqa: S311  # no secret
        population = [trials.start, *(random_point(trials, rng) for _ in range(self.population - 1))]
        for _ in range(self.generations):
            trials.try_points(population)
            if trials.is_over:
                break
            parents = sorted(trials.costs, key=trials.costs.__getitem__)[: self.kept]
            children = [self._child(parents, trials, rng) for _ in range(self.population)]
            fresh = [child for child in children if child not in trials.costs]
            population = fresh or [random_point(trials, rng) for _ in range(self.population)]
        return trials.best

    def _child(self, parents: list[Point], trials: Trials, rng: Random) -> Point:
        mother, father = rng.choice(parents), rng.choice(parents)
        mixed = (rng.choice(pair) for pair in zip(mother, father, strict=True))
        pairs = zip(mixed, trials.choices, strict=True)
        return tuple(
            rng.choice(keys) if rng.random() < self.mutation else inherited for inherited, keys in pairs
        )
