"""The choice of layers against brute force over all combinations."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.tune.quantise.precision_problem import (
    Border,
    LayerCost,
    PrecisionProblem,
    solve_with_repair,
)

pytest.importorskip("scipy")

TIMES = st.integers(1, 40).map(lambda number: number * 1e-5)


@st.composite
def problems(draw: st.DrawFn) -> tuple[PrecisionProblem, float]:
    """Up to eight layers with some borders, and a budget."""
    count = draw(st.integers(1, 8))
    errors = st.integers(0, 50).map(lambda number: number * 1e-6)
    layers = tuple(LayerCost(draw(TIMES), draw(TIMES), draw(errors)) for _ in range(count))
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    borders = tuple(Border(*pair, draw(TIMES)) for pair in chosen)
    return PrecisionProblem(layers, borders), draw(st.integers(0, 200)) * 1e-6


def least_seconds(problem: PrecisionProblem, budget: float) -> float:
    numbers = range(len(problem.layers))
    chosen = (frozenset(items) for size in range(len(numbers) + 1) for items in combinations(numbers, size))
    return min(problem.seconds(layers) for layers in chosen if problem.error(layers) <= budget)


@settings(max_examples=examples(60), deadline=None)
@given(problems())
def test_the_choice_is_the_fastest_within_the_budget(given_problem: tuple[PrecisionProblem, float]) -> None:
    problem, budget = given_problem
    least = least_seconds(problem, budget)
    for chosen in (problem.solve(budget), problem._by_integer_program(budget)):
        assert problem.error(chosen) <= budget * (1 + 1e-6) + 1e-12
        assert problem.seconds(chosen) == pytest.approx(least)


def test_a_layer_between_two_in_integers_is_in_integers_too() -> None:
    """It is slower by itself, but spares two conversions."""
    layers = (LayerCost(2.0, 1.0, 0.0), LayerCost(1.0, 1.2, 0.0), LayerCost(2.0, 1.0, 0.0))
    borders = (Border(0, 1, 0.3), Border(1, 2, 0.3))
    assert PrecisionProblem(layers, borders).solve(1.0) == {0, 1, 2}
    assert PrecisionProblem(layers).solve(1.0) == {0, 2}


def test_many_layers() -> None:
    layers = tuple(LayerCost(2.0, 1.0, 0.01 * number) for number in range(40))
    chosen = PrecisionProblem(layers).solve(0.55)
    assert chosen == frozenset(range(11))


def test_a_miss_scales_the_predictions() -> None:
    layers = tuple(LayerCost(2.0, 1.0, 0.1) for _ in range(4))
    problem = PrecisionProblem(layers)
    first = problem.solve(0.2)
    assert len(first) == 2
    assert len(solve_with_repair(problem, 0.2, [(first, 0.4)])) == 1
    assert len(solve_with_repair(problem, 0.2, [(first, 0.1)])) == 4
