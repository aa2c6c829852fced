"""Strategies find the optimum of made-up costs, within their limits, and the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import inf
from random import Random

import pytest

from intarsia.support.errors import UsageError
from intarsia.tune.strategy import (
    Beam,
    EvolutionarySearch,
    Exhaustive,
    IntegerProgram,
    Point,
    RandomSearch,
    SearchLimits,
    SimulatedAnnealing,
    Strategy,
    Trials,
)

SIZES = (3, 4, 2, 5, 3)
CHOICES = [[str(key) for key in range(size)] for size in SIZES]  # 360 points

Surface = Callable[[Point], float]


def surface(seed: int, pairs: str) -> Surface:
    """Costs: a part for each decision, and for pairs of them: "none", "in a row" or "all"."""
    rng = Random(seed)
    single = {(at, key): rng.uniform(0, 3) for at, keys in enumerate(CHOICES) for key in keys}
    places = [(a, b) for a in range(len(SIZES)) for b in range(a + 1, len(SIZES))]
    used = [(a, b) for a, b in places if pairs == "all" or (pairs == "in a row" and b == a + 1)]
    both = {(a, one, b, two): rng.uniform(-2, 2) for a, b in used for one in CHOICES[a] for two in CHOICES[b]}

    def cost(point: Point) -> float:
        total = 20 + sum(single[at, key] for at, key in enumerate(point))
        return total + sum(both[a, point[a], b, point[b]] for a, b in used)

    return cost


def trials_of(cost: Surface, **limits: float) -> Trials:
    return Trials(CHOICES, lambda points: list(map(cost, points)), SearchLimits(**limits))


def optimum(cost: Surface) -> float:
    return min(map(cost, product(*CHOICES)))


ANYTIME: dict[str, tuple[RandomSearch | EvolutionarySearch | SimulatedAnnealing, int, int]] = {
    "random": (RandomSearch(), 360, 50),
    "evolutionary": (EvolutionarySearch(), 250, 49),
    "annealing": (SimulatedAnnealing(), 250, 50),
}
"""Strategies with a number of trials, and for how many of 50 seeds these find the optimum of 360 points."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ANYTIME)
def test_anytime_strategies_find_the_optimum_for_fifty_seeds(name: str) -> None:
    strategy, most, expected = ANYTIME[name]
    found = 0
    for seed in range(50):
        cost = surface(seed, "all")
        trials = trials_of(cost, trials=most)
        best = replace(strategy, seed=seed).search(trials)
        assert len(trials.costs) <= most
        assert cost(best) == trials.best_cost <= cost(trials.start)
        found += trials.best_cost == optimum(cost)
    assert found >= expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "pairs", "most"),
    [
        (Exhaustive(), "all", 360),
        (IntegerProgram(), "all", 13 + 57 + 1),
        (IntegerProgram(pairs=False), "none", 13 + 1),
        (Beam(width=1), "none", 1 + sum(size - 1 for size in SIZES)),
    ],
    ids=["exhaustive", "pairs", "independent", "greedy"],
)
def test_complete_strategies_are_exact_where_costs_have_their_form(
    strategy: Strategy, pairs: str, most: int
) -> None:
    for seed in range(50):
        cost = surface(seed, pairs)
        trials = trials_of(cost)
        assert cost(strategy.search(trials)) == pytest.approx(optimum(cost), abs=1e-9)
        assert len(trials.costs) <= most


def test_a_wider_beam_is_no_worse_on_average_and_the_widest_is_exact() -> None:
    gaps = dict.fromkeys((1, 4, 200), 0.0)
    for seed in range(20):
        cost = surface(seed, "all")
        for width in gaps:
            gaps[width] += cost(Beam(width).search(trials_of(cost))) - optimum(cost)
    assert gaps[1] > gaps[4] > 0
    assert gaps[200] == 0


EVERY: dict[str, Strategy] = {
    **{name: strategy for name, (strategy, *_) in ANYTIME.items()},
    "exhaustive": Exhaustive(),
    "beam": Beam(),
    "integer": IntegerProgram(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_the_same_costs_give_the_same_trials(name: str) -> None:
    runs = []
    for _ in range(2):
        trials = trials_of(surface(7, "all"), trials=120)
        EVERY[name].search(trials)
        runs.append(list(trials.costs.items()))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", EVERY)
def test_failures_are_avoided(name: str) -> None:
    inner = surface(3, "in a row")

    def cost(point: Point) -> float:
        return inf if point[1] == "2" or (point[0], point[3]) == ("1", "1") else inner(point)

    best = EVERY[name].search(trials_of(cost, trials=300))
    assert cost(best) < inf


@pytest.mark.parametrize("name", EVERY)
def test_limits_end_a_search_with_the_best_so_far(name: str) -> None:
    cost = surface(1, "all")
    trials = trials_of(cost, trials=5)
    best = EVERY[name].search(trials)
    assert len(trials.costs) == 5
    assert cost(best) == min(trials.costs.values())


@pytest.mark.parametrize("name", EVERY)
def test_one_point_is_a_space(name: str) -> None:
    trials = Trials([["only"]], lambda points: [1.0 for _ in points])
    assert EVERY[name].search(trials) == ("only",)


@pytest.mark.parametrize("name", EVERY)
def test_a_wish_to_stop_is_heard(name: str) -> None:
    asked: list[int] = []

    def cost(points: Sequence[Point]) -> list[float]:
        asked.append(len(points))
        return [1.0 for _ in points]

    trials = Trials(CHOICES, cost, should_stop=lambda: bool(asked))
    EVERY[name].search(trials)
    assert len(asked) == 1


def test_time_ends_a_search() -> None:
    seconds = iter(range(1000))
    trials = Trials(
        CHOICES,
        lambda points: [1.0 for _ in points],
        SearchLimits(seconds=20),
        clock=lambda: float(next(seconds)),
    )
    SimulatedAnnealing().search(trials)
    assert 1 < len(trials.costs) < 20


def test_points_are_paid_for_once() -> None:
    paid: list[Point] = []

    def cost(points: Sequence[Point]) -> list[float]:
        paid.extend(points)
        return [1.0 for _ in points]

    trials = Trials(CHOICES, cost)
    for strategy in EVERY.values():
        strategy.search(trials)
    assert len(paid) == len(set(paid)) == trials.size


def test_a_search_that_may_try_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to decide"):
        Trials([], lambda points: [])
    with pytest.raises(UsageError, match="tries nothing"):
        SearchLimits(trials=0)
    with pytest.raises(UsageError, match="before its first trial"):
        Exhaustive().search(Trials(CHOICES, lambda _: [], should_stop=lambda: True))
