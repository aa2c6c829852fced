"""The choice of layers against brute force over all combinations."""

from __future__ import annotations

import math
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.tune.quantise.layer_types import LayerTypes
from intarsia.tune.quantise.precision_problem import (
    Border,
    LayerCost,
    PrecisionProblem,
)

pytest.importorskip("scipy")

TIMES = st.integers(1, 40).map(lambda number: number * 1e-5)


@st.composite
def problems(draw: st.DrawFn) -> tuple[PrecisionProblem, float]:
    """Up to six layers, some with a third type, with some borders, and a budget."""
    count = draw(st.integers(1, 6))
    errors = st.integers(0, 50).map(lambda number: number * 1e-6)
    thirds = st.one_of(st.just(math.inf), TIMES)
    layers = tuple(
        LayerCost(draw(TIMES), draw(TIMES), draw(errors), draw(thirds), draw(errors)) for _ in range(count)
    )
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    seconds = st.one_of(st.none(), st.just(0.0), TIMES)
    borders = tuple(Border(*pair, draw(TIMES), draw(seconds), draw(seconds)) for pair in chosen)
    return PrecisionProblem(layers, borders), draw(st.integers(0, 200)) * 1e-6


def least_seconds(problem: PrecisionProblem, budget: float) -> float:
    count = len(problem.layers)
    combinations_of_types = product(range(3), repeat=count)
    chosen = (
        LayerTypes(
            frozenset(n for n in range(count) if types[n] == 1),
            frozenset(n for n in range(count) if types[n] == 2),
        )
        for types in combinations_of_types
    )
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
    assert PrecisionProblem(layers, borders).solve(1.0).int8 == {0, 1, 2}
    assert PrecisionProblem(layers).solve(1.0).int8 == {0, 2}


def test_many_layers() -> None:
    layers = tuple(LayerCost(2.0, 1.0, 0.01 * number) for number in range(40))
    chosen = PrecisionProblem(layers).solve(0.55)
    assert chosen == LayerTypes(frozenset(range(11)))


def test_bfloat16_is_the_middle_choice() -> None:
    """Where integers do not fit into the budget, bfloat16 does, in as many layers as errors allow."""
    layers = tuple(LayerCost(4.0, 1.0, 1.0, 2.0, 0.1 * (1 + number)) for number in range(4))
    problem = PrecisionProblem(layers)
    assert problem.solve(0.65) == LayerTypes(frozenset(), frozenset({0, 1, 2}))
    assert problem.solve(1.35) == LayerTypes(frozenset(), frozenset(range(4)))
    assert problem.solve(1.65) == LayerTypes(frozenset({3}), frozenset({0, 1, 2}))
    assert problem.solve(0.0) == LayerTypes()


def test_conversions_between_all_types_cost() -> None:
    layers = (LayerCost(2.0, 1.0, 0.0), LayerCost(2.0, 3.0, 0.0, 1.9, 0.0), LayerCost(2.0, 1.0, 0.0))
    problem = PrecisionProblem(layers, (Border(0, 1, 0.2), Border(1, 2, 0.2)))
    for chosen in (problem.solve(1.0), problem._by_integer_program(1.0)):
        assert chosen == LayerTypes(frozenset({0, 2}), frozenset({1}))
    assert problem.seconds(LayerTypes(frozenset({0, 2}), frozenset({1}))) == pytest.approx(4.3)


def test_a_conversion_costs_what_the_pair_of_types_costs() -> None:
    """Bfloat16 follows float32 for nothing, and integers for 0.5."""
    layers = (LayerCost(2.0, 1.0, 0.0), LayerCost(2.0, 9.0, 0.0, 1.8, 0.0), LayerCost(1.0, 9.0, 0.0))
    borders = tuple(Border(*pair, 0.3, 0.0, 0.5) for pair in ((0, 1), (1, 2)))
    problem = PrecisionProblem(layers, borders)
    for chosen in (problem.solve(1.0), problem._by_integer_program(1.0)):
        assert chosen == LayerTypes(frozenset({0}))
    assert problem.seconds(LayerTypes(frozenset({0}), frozenset({1}))) == pytest.approx(4.3)
    assert problem.seconds(LayerTypes(bfloat16=frozenset({1}))) == pytest.approx(4.8)
