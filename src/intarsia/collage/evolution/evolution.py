"""Evolution of genomes: a choice for each gene, rated by the caller; no program, no clock.

Source: the second level of Collage (Jeon et al., Collage: Seamless Integration of Deep Learning Backends with
Automatic Placement, PACT 2022), with tournaments, two-point crossover and flips of genes.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

from intarsia.support.callbacks import never

Genome: TypeAlias = tuple[int, ...]

Rate: TypeAlias = Callable[[Sequence[Genome]], Sequence[float | None]]
"""What some genomes cost, in order: infinite for invalid ones, None for those that there was no time for."""

_TRIES: Final = 8
"""So often a child that is known already is mutated again, at most."""


@dataclass(frozen=True, slots=True)
class EvolutionOptions:
    """How the search is held.

    Attributes:
        population: Individuals of a generation.
        tournament: Number of individuals drawn at random, of which the best becomes a parent.
        crossover: Probability that a child has two parents.
        mutation: Probability that a child is mutated.
        flips: Probability that a mutation flips a gene; one gene is flipped in any case.
        elite: The best individuals, which live on.
        generations: The largest number of generations.
        patience: The search ends after so many generations without a better individual.
        cache: Individuals whose cost is remembered, the latest used ones.
        kept: Number of the best individuals that are returned.
    """

    population: int = 24
    tournament: int = 3
    crossover: float = 0.5
    mutation: float = 0.5
    flips: float = 0.05
    elite: int = 2
    generations: int = 10_000
    patience: int = 20
    cache: int = 1_000
    kept: int = 8


DEFAULT_EVOLUTION: Final = EvolutionOptions()


@dataclass(frozen=True, slots=True)
class Individual:
    """A genome with its cost."""

    genome: Genome
    cost: float


@dataclass(frozen=True, slots=True)
class EvolutionResult:
    """What a search has found.

    Attributes:
        best: Different individuals, the cheapest first; of equal ones the first that was found. Invalid ones
            are not among them.
        generations: Number of generations after the first one.
        rated: Individuals that were rated.
        is_cut_off: Whether the time ended before the search did.
    """

    best: tuple[Individual, ...]
    generations: int
    rated: int
    is_cut_off: bool


def evolve_genomes(
    choices: Sequence[Sequence[int]],
    seeds: Iterable[Genome],
    rate: Rate,
    generator: Random,
    options: EvolutionOptions = DEFAULT_EVOLUTION,
    should_stop: Callable[[], bool] = never,
) -> EvolutionResult:
    """Search for the cheapest genome; never worse than the best seed.

    Seeds are rated first, in their order, and crossings of them fill the first generation, or mutants where
    these are known. Deterministic for deterministic ratings and a generator of the same state.

    Args:
        choices: Values of each gene.
        seeds: Genomes to begin with; at least one.
        rate: Rates genomes, each one once as long as it is remembered.
        generator: Source of all random numbers.
        options: Options of the search.
        should_stop: A yes ends the search with what is known.

    Raises:
        ValueError: There is no seed, or one has another length or other values.
    """
    begin = list(dict.fromkeys(seeds))
    if not begin:
        raise ValueError("evolution needs at least one seed")
    for seed in begin:
        if len(seed) != len(choices) or any(gene not in own for gene, own in zip(seed, choices, strict=True)):
            raise ValueError(f"the seed {seed} is no genome of these choices")
    return _Evolution(choices, rate, generator, options, should_stop).run(begin)


class _Evolution:
    def __init__(
        self,
        choices: Sequence[Sequence[int]],
        rate: Rate,
        generator: Random,
        options: EvolutionOptions,
        should_stop: Callable[[], bool],
    ) -> None:
        self._choices = choices
        self._open = [place for place, own in enumerate(choices) if len(own) > 1]
        self._size = math.prod(map(len, choices))
        self._rate = rate
        self._generator = generator
        self._options = options
        self._should_stop = should_stop
        self._costs: OrderedDict[Genome, float] = OrderedDict()
        self._best: list[Individual] = []
        self._rated = 0
        self._is_cut_off = False

    def run(self, seeds: list[Genome]) -> EvolutionResult:
        population = self._individuals(seeds)
        if self._open:
            count = max(0, self._options.population - len(seeds))
            population += self._individuals([self._between(seeds) for _ in range(count)])
        generation = waited = 0
        while not self._is_over(population) and waited < self._options.patience:
            if generation == self._options.generations:
                break
            generation += 1
            before = self._best[0].cost
            children = [self._child(population) for _ in range(self._options.population)]
            population.sort(key=_cost)
            population = population[: self._options.elite] + self._individuals(children)
            waited = 0 if self._best[0].cost < before else waited + 1
        return EvolutionResult(tuple(self._best), generation, self._rated, self._is_cut_off)

    def _is_over(self, population: Sequence[Individual]) -> bool:
        is_exhausted = len(self._costs) >= self._size
        return self._is_cut_off or is_exhausted or not population

    def _individuals(self, genomes: Iterable[Genome]) -> list[Individual]:
        """Genomes with their costs, without invalid ones and those that there was no time for."""
        wanted = list(dict.fromkeys(genomes))
        rated = {genome: self._costs[genome] for genome in wanted if genome in self._costs}
        unknown = [genome for genome in wanted if genome not in rated]
        for genome in rated:
            self._costs.move_to_end(genome)
        if unknown and not self._is_cut_off and not self._should_stop():
            for genome, cost in zip(unknown, self._rate(unknown), strict=True):
                if cost is None:
                    self._is_cut_off = True
                else:
                    rated[genome] = cost
                    self._note(genome, cost)
        elif unknown:
            self._is_cut_off = True
        return [
            Individual(genome, rated[genome])
            for genome in wanted
            if math.isfinite(rated.get(genome, math.inf))
        ]

    def _note(self, genome: Genome, cost: float) -> None:
        self._rated += 1
        self._costs[genome] = cost
        if len(self._costs) > self._options.cache:
            self._costs.popitem(last=False)
        if math.isfinite(cost) and all(each.genome != genome for each in self._best):
            self._best = sorted([*self._best, Individual(genome, cost)], key=_cost)[: self._options.kept]

    def _child(self, population: Sequence[Individual]) -> Genome:
        child = self._parent(population)
        if self._generator.random() < self._options.crossover:
            child = self._crossed(child, self._parent(population))
        if self._generator.random() < self._options.mutation:
            child = self._mutated(child)
        return self._new(child) if child in self._costs else child

    def _parent(self, population: Sequence[Individual]) -> Genome:
        rivals = [self._generator.choice(population) for _ in range(self._options.tournament)]
        return min(rivals, key=_cost).genome

    def _between(self, seeds: Sequence[Genome]) -> Genome:
        """A seed with a section of another one: a few borders are moved, where a flip makes two new ones."""
        child = self._crossed(self._generator.choice(seeds), self._generator.choice(seeds))
        return self._new(child) if child in self._costs else child

    def _crossed(self, mother: Genome, father: Genome) -> Genome:
        """The one with a section of the other."""
        begin, end = sorted(self._generator.choices(range(len(mother) + 1), k=2))
        return (*mother[:begin], *father[begin:end], *mother[end:])

    def _mutated(self, genome: Genome) -> Genome:
        sure = self._generator.choice(self._open)
        genes = list(genome)
        for gene in self._open:
            if gene == sure or self._generator.random() < self._options.flips:
                others = [value for value in self._choices[gene] if value != genes[gene]]
                genes[gene] = self._generator.choice(others)
        return tuple(genes)

    def _new(self, genome: Genome) -> Genome:
        """A mutant that is not known yet, if one is found soon."""
        for _ in range(_TRIES):
            genome = self._mutated(genome)
            if genome not in self._costs:
                break
        return genome


def _cost(individual: Individual) -> float:
    return individual.cost
