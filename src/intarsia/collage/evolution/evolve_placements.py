"""Evolution of placements with their end-to-end latency as fitness: what covers add up, this measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from intarsia.collage.evolution.evolution import DEFAULT_EVOLUTION, EvolutionOptions, Genome, evolve_genomes
from intarsia.collage.evolution.placement_space import PlacementSpace
from intarsia.collage.placement.placement import Placement
from intarsia.support.callbacks import never

Fitness: TypeAlias = Callable[[Sequence[Placement]], Sequence[float | None]]
"""Seconds that placements take, in order: infinite if one fails, None if there was no time to measure it."""


@dataclass(frozen=True, slots=True)
class RatedPlacement:
    """A placement with the seconds that the whole program took."""

    placement: Placement
    seconds: float


@dataclass(frozen=True, slots=True)
class EvolvedPlacements:
    """What an evolution has found.

    Attributes:
        best: The fastest first; no slower than the fastest seed. Those that failed are not among them.
        seeds: Number of seeds that were measured.
        rated: Placements that were measured, seeds included.
        generations: Number of generations.
        is_cut_off: Whether the time ended before the search did.
    """

    best: tuple[RatedPlacement, ...]
    seeds: int
    rated: int
    generations: int
    is_cut_off: bool


def evolve(
    space: PlacementSpace,
    seeds: Sequence[Placement],
    fitness: Fitness,
    generator: Random,
    options: EvolutionOptions = DEFAULT_EVOLUTION,
    should_stop: Callable[[], bool] = never,
) -> EvolvedPlacements:
    """Search placements of groups of operators, beginning with seeds and each toolchain alone.

    Anytime: the seeds are measured first, as they are; then individuals, none twice.

    Args:
        space: The genes.
        seeds: Such as the cheapest covers; at least one.
        fitness: Measures placements end to end.
        generator: Source of all random numbers.
        options: Options of the search.
        should_stop: A yes ends the search with what is known.

    Raises:
        ValueError: There is no seed.
    """
    rating = _Rating(space, fitness)
    measured = rating.rate(seeds)
    is_cut_off = None in measured
    generations = 0
    genomes = [space.encode(seed) for seed in seeds]
    genomes += [space.uniform(number, genomes[0]) for number in range(len(space.specs)) if genomes]
    if not is_cut_off and not should_stop():
        found = evolve_genomes(space.choices, genomes, rating.of_genomes, generator, options, should_stop)
        generations, is_cut_off = found.generations, found.is_cut_off
    best = sorted(rating.rated.values(), key=lambda rated: rated.seconds)
    return EvolvedPlacements(
        best=tuple(rated for rated in best if math.isfinite(rated.seconds))[: options.kept],
        seeds=sum(rated is not None for rated in measured),
        rated=len(rating.rated),
        generations=generations,
        is_cut_off=is_cut_off,
    )


@dataclass(eq=False)
class _Rating:
    """Rates placements once each, and genomes as the placements that they stand for."""

    space: PlacementSpace
    fitness: Fitness
    rated: dict[str, RatedPlacement] = field(default_factory=dict)

    def of_genomes(self, genomes: Sequence[Genome]) -> list[float | None]:
        """Infinite for those that stand for no placement."""
        placements = [self.space.decode(genome) for genome in genomes]
        costs = iter(self.rate([each for each in placements if each is not None]))
        return [math.inf if each is None else next(costs) for each in placements]

    def rate(self, placements: Sequence[Placement]) -> list[float | None]:
        wanted = {placement.candidate.digest: placement for placement in placements}
        left = {digest: placement for digest, placement in wanted.items() if digest not in self.rated}
        if left:
            for (digest, placement), seconds in zip(
                left.items(), self.fitness(list(left.values())), strict=True
            ):
                if seconds is not None:
                    self.rated[digest] = RatedPlacement(placement, seconds)
        rated = [self.rated.get(placement.candidate.digest) for placement in placements]
        return [None if placement is None else placement.seconds for placement in rated]
