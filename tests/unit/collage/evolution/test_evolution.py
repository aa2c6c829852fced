"""Evolution of genomes with planted costs: optima, seeds, time, determinism."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from intarsia.collage.evolution.evolution import DEFAULT_EVOLUTION, EvolutionResult, Genome, evolve_genomes

Cost = Callable[[Genome], float]


@dataclass(eq=False)
class Rater:
    """Rates genomes by a function, until the time is over."""

    cost: Cost
    seconds: float = math.inf
    asked: list[Genome] = field(default_factory=list)

    def __call__(self, genomes: Sequence[Genome]) -> list[float | None]:
        found: list[float | None] = []
        for genome in genomes:
            is_late = len(self.asked) >= self.seconds
            if not is_late:
                self.asked.append(genome)
            found.append(None if is_late else self.cost(genome))
        return found


def planted(seed: int, choices: Sequence[Sequence[int]]) -> Cost:
    """Every choice has a cost, every border between different neighbours as well, and some pairs fail."""
    generator = Random(seed)
    own = [{value: generator.uniform(1, 3) for value in values} for values in choices]
    border = generator.uniform(0.2, 1)
    place = generator.choice([place for place in range(1, len(choices)) if len(choices[place]) > 1])
    broken = (choices[place - 1][0], choices[place][-1])

    def cost(genome: Genome) -> float:
        if genome[place - 1 : place + 1] == broken:
            return math.inf
        borders = sum(one != other for one, other in itertools.pairwise(genome))
        return sum(costs[value] for costs, value in zip(own, genome, strict=True)) + border * borders

    return cost


def uniform(choices: Sequence[Sequence[int]], value: int) -> Genome:
    return tuple(value if value in values else values[0] for values in choices)


def search(cost: Cost, choices: Sequence[Sequence[int]], seed: int = 0) -> EvolutionResult:
    seeds = [uniform(choices, 0), uniform(choices, 1)]
    return evolve_genomes(choices, seeds, Rater(cost), Random(seed))


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("seed", range(30))
def test_the_optimum_of_small_genomes_is_found(seed: int) -> None:
    choices = [
        [(0, 1), (0, 1, 2), (1, 2), (0,)][Random(seed * 10 + place).randrange(4)] for place in range(8)
    ]
    cost = planted(seed, choices)
    expected = min(map(cost, itertools.product(*choices)))
    assert search(cost, choices, seed).best[0].cost == expected


def test_a_long_genome_comes_near_the_optimum_with_few_ratings() -> None:
    """All zeros but a section of ones is the best of 2**40; only borders are paid besides."""

    def cost(genome: Genome) -> float:
        wrong = sum(gene != (10 <= place < 25) for place, gene in enumerate(genome))
        return 1 + wrong + 0.3 * sum(one != other for one, other in itertools.pairwise(genome))

    choices = [(0, 1)] * 40
    result = search(cost, choices)
    assert result.rated < 4_000
    assert result.best[0].cost <= 3.6  # a change of a gene in 40 costs 1.6 at most
    assert min(cost(uniform(choices, 0)), cost(uniform(choices, 1))) >= 16


@pytest.mark.parametrize("time", [1, 2, 3, 10, 30, 50, 200])
def test_it_is_never_worse_than_the_seeds_it_had_time_for(time: int) -> None:
    choices = [(0, 1, 2)] * 10
    cost = planted(7, choices)
    seeds = [uniform(choices, value) for value in range(3)]
    rater = Rater(cost, seconds=time)
    result = evolve_genomes(choices, seeds, rater, Random(1))
    assert rater.asked[:3] == seeds[:time]
    assert result.best[0].cost == min(map(cost, rater.asked))
    assert result.is_cut_off
    assert result.rated == len(rater.asked) == time


def test_no_time_at_all_finds_nothing() -> None:
    result = evolve_genomes([(0, 1)], [(0,)], Rater(len, seconds=0), Random(0))
    assert result == EvolutionResult((), 0, 0, is_cut_off=True)


def test_a_wish_to_stop_ends_it_with_what_is_known() -> None:
    rater = Rater(planted(3, [(0, 1)] * 12))
    choices = [(0, 1)] * 12
    result = evolve_genomes(
        choices, [uniform(choices, 0)], rater, Random(0), should_stop=lambda: len(rater.asked) >= 40
    )
    assert result.is_cut_off
    assert 40 <= len(rater.asked) < 40 + DEFAULT_EVOLUTION.population
    assert result.best[0].cost == min(map(rater.cost, rater.asked))


def test_the_same_generator_finds_the_same_in_the_same_order() -> None:
    choices = [(0, 1, 2)] * 12
    runs = []
    for seed in (5, 5, 6):
        rater = Rater(planted(1, choices))
        runs.append((evolve_genomes(choices, [uniform(choices, 0)], rater, Random(seed)), rater.asked))
    assert runs[0] == runs[1]
    assert runs[0][1] != runs[2][1]


def test_nothing_is_rated_twice_while_it_is_remembered() -> None:
    choices = [(0, 1)] * 16
    rater = Rater(planted(2, choices))
    evolve_genomes(choices, [uniform(choices, 0)], rater, Random(0), replace(DEFAULT_EVOLUTION, cache=10**6))
    assert len(rater.asked) == len(set(rater.asked)) > 24


def test_what_was_forgotten_is_rated_again_and_counts_once_among_the_best() -> None:
    choices = [(0, 1)] * 4
    rater = Rater(planted(2, choices))
    options = replace(DEFAULT_EVOLUTION, cache=4, population=6, kept=16)
    result = evolve_genomes(choices, [uniform(choices, 0)], rater, Random(0), options)
    assert len(rater.asked) > len(set(rater.asked))
    genomes = [each.genome for each in result.best]
    assert len(genomes) == len(set(genomes))


def test_a_space_that_is_searched_through_ends_the_search() -> None:
    choices = [(0, 1), (4,), (0, 1)]
    rater = Rater(sum)
    result = evolve_genomes(choices, [(1, 4, 1)], rater, Random(0))
    assert set(rater.asked) == set(itertools.product(*choices))
    assert [each.cost for each in result.best] == [4, 5, 5, 6]
    assert not result.is_cut_off


def test_invalid_individuals_are_no_parents_and_never_returned() -> None:
    """One gene must stay as it is, or all fails."""
    choices = [(0, 1)] * 10
    rater = Rater(lambda genome: math.inf if genome[4] else 20.0 - sum(genome))
    result = evolve_genomes(choices, [uniform(choices, 0)], rater, Random(0))
    assert any(genome[4] for genome in rater.asked)
    assert result.best[0].genome == (1, 1, 1, 1, 0, 1, 1, 1, 1, 1)
    assert all(math.isfinite(each.cost) for each in result.best)


def test_if_everything_fails_nothing_is_found() -> None:
    result = evolve_genomes([(0, 1)] * 9, [(0,) * 9], Rater(lambda _: math.inf), Random(0))
    assert (result.best, result.generations, result.is_cut_off) == ((), 0, False)


@pytest.mark.parametrize("seeds", [[], [(0, 0, 0)], [(0, 7)]])
def test_seeds_that_are_no_genomes_are_refused(seeds: list[Genome]) -> None:
    with pytest.raises(ValueError, match="seed"):
        evolve_genomes([(0, 1), (0, 1)], seeds, Rater(sum), Random(0))
