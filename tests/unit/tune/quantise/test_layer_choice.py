"""The search for types of layers, against brute force on what programs cost and layers alone do not say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.tune.quantise.layer_choice import LayerSearch, greedy_layers
from intarsia.tune.quantise.layer_types import LayerTypes
from intarsia.tune.quantise.output_error import OutputError
from intarsia.tune.quantise.precision_problem import Border, LayerCost, PrecisionProblem, layer_types

pytest.importorskip("scipy")


def within(budget: float) -> Callable[[OutputError], bool]:
    return lambda error: error.relative <= budget


def truth(problem: PrecisionProblem) -> tuple[Callable[..., OutputError], Callable[..., list[float]]]:
    """Functions that measure errors and times of programs without noise."""
    return (
        lambda types: OutputError(problem.error(types) ** 0.5),
        lambda programs: [problem.seconds(types) for types in programs],
    )


def wrong_problem(integer: Callable[[int, int], int]) -> tuple[PrecisionProblem, PrecisionProblem]:
    """A chain as timed layer by layer, and as it is: each type, layer and conversion with a factor.

    Args:
        integer: Function that draws an integer from the least to the largest.
    """
    size = integer(2, 5)

    def factor() -> float:
        return integer(3, 20) / 10

    def seconds() -> float:
        return float(integer(1, 40))

    def error() -> float:
        return integer(1, 50) * 1e-4

    alone = [(seconds(), seconds(), error(), seconds(), error()) for _ in range(size)]
    shared = [factor() for _ in range(3)]
    true = [
        LayerCost(row[0] * shared[0], row[1] * shared[1], row[2] * factor(), row[3] * shared[2], row[4])
        for row in alone
    ]
    pairs = [(number, number + 1, seconds()) for number in range(size - 1)]
    conversion = float(integer(0, 1))
    return (
        PrecisionProblem(tuple(LayerCost(*row) for row in alone), tuple(Border(*pair) for pair in pairs)),
        PrecisionProblem(tuple(true), tuple(Border(*pair[:2], pair[2] * conversion) for pair in pairs)),
    )


@st.composite
def wrong_problems(draw: st.DrawFn) -> tuple[PrecisionProblem, PrecisionProblem]:
    return wrong_problem(lambda least, largest: draw(st.integers(least, largest)))


def chosen_seconds(alone: PrecisionProblem, true: PrecisionProblem, budget: float) -> float:
    """Return the time of what the search chooses, after a look at its error and its time."""
    measure, race = truth(true)
    choice = LayerSearch(alone, measure, race).best(budget, within(budget))
    if choice is None:
        return true.seconds(LayerTypes())
    assert choice.error.relative <= budget
    assert choice.seconds == pytest.approx(true.seconds(choice.layers))
    return choice.seconds


@settings(max_examples=examples(25), deadline=None)
@given(wrong_problems(), st.integers(1, 60))
def test_the_choice_is_never_slower_than_greed_and_one_type(
    problems: tuple[PrecisionProblem, PrecisionProblem], steps: int
) -> None:
    alone, true = problems
    budget = (steps * 4e-4) ** 0.5
    measure, _ = truth(true)
    size = len(alone.layers)
    others = [
        greedy_layers([layer.error for layer in alone.layers], measure, within(budget)),
        LayerTypes(frozenset(range(size))),
        LayerTypes(bfloat16=frozenset(range(size))),
    ]
    allowed = [types for types in others if types is not None and measure(types).relative <= budget]
    least = min(map(true.seconds, [LayerTypes(), *allowed]))
    assert chosen_seconds(alone, true, budget) <= least * (1 + 1e-9)


def test_corrected_costs_lead_to_the_optimum_of_nearly_all_chains() -> None:
    """Nothing promises it for one chain: what was not proposed is not measured."""
    random = Random(4)
    ratios = []
    for _ in range(40):
        alone, true = wrong_problem(random.randint)
        budget = (random.randint(1, 60) * 4e-4) ** 0.5
        measure, _ = truth(true)
        least = min(
            true.seconds(types)
            for types in map(layer_types, product(range(3), repeat=len(alone.layers)))
            if measure(types).relative <= budget
        )
        ratios.append(chosen_seconds(alone, true, budget) / least)
    assert sum(ratio < 1.001 for ratio in ratios) >= 36
    assert max(ratios) < 2.5


def test_layers_that_are_slow_alone_only() -> None:
    """Alone, integers pay for layouts that neighbours share: they seem slower than float32, and are not."""
    alone = PrecisionProblem(tuple(LayerCost(2.0, 2.5, 1e-6) for _ in range(16)))
    true = PrecisionProblem(
        tuple(LayerCost(2.0, 0.5, 1e-6) for _ in range(16)),
        tuple(Border(number, number + 1, 0.2) for number in range(15)),
    )
    choice = LayerSearch(alone, *truth(true)).best(10**-2.5, within(10**-2.5))
    assert choice is not None
    assert len(choice.layers.int8) == 10
    assert choice.seconds < true.seconds(LayerTypes(frozenset(range(0, 16, 2))))


def test_a_second_budget_costs_no_measurement_of_the_same_program() -> None:
    true = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 1e-4 * number) for number in range(1, 9)))
    measure, race = truth(true)
    seen: list[LayerTypes] = []
    errors: list[LayerTypes] = []

    def counted(programs: Sequence[LayerTypes]) -> list[float]:
        seen.extend(programs)
        return race(programs)

    def noted(types: LayerTypes) -> OutputError:
        errors.append(types)
        return measure(types)

    search = LayerSearch(true, noted, counted)
    for budget in (0.05, 0.03, 0.05):
        assert search.best(budget, within(budget)) is not None
    assert len(errors) == len(set(errors))
    fastest = min(set(seen), key=true.seconds)
    assert all(seen.count(types) == 1 for types in set(seen) - {fastest})


def test_predictions_that_are_too_low_are_repaired() -> None:
    """The true error is four times the predicted one in power: 0.2 for each layer."""
    problem = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 0.01) for _ in range(8)))

    def measure(layers: LayerTypes) -> OutputError:
        return OutputError(0.2 * len(layers.int8) ** 0.5)

    choice = LayerSearch(problem, measure, truth(problem)[1]).best(0.41, within(0.41))
    assert choice is not None
    assert len(choice.layers.int8) == 4


def test_predictions_that_are_too_high_are_repaired() -> None:
    problem = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 0.04) for _ in range(8)))

    def measure(layers: LayerTypes) -> OutputError:
        return OutputError(0.1 * len(layers.int8) ** 0.5)

    choice = LayerSearch(problem, measure, truth(problem)[1]).best(0.4, within(0.4))
    assert choice is not None
    assert len(choice.layers.int8) == 8


def test_a_metric_that_refuses_lowers_the_budget() -> None:
    problem = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 0.01) for _ in range(8)))

    def measure(layers: LayerTypes) -> OutputError:
        return OutputError(0.1 * len(layers.int8) ** 0.5, drop=0.1 * len(layers.int8))

    search = LayerSearch(problem, measure, truth(problem)[1])
    choice = search.best(0.3, lambda error: error.drop <= 0.25)
    assert choice is not None
    assert len(choice.layers.int8) == 2
    assert search.best(0.3, lambda error: error.drop < 0) is None


def test_programs_that_do_not_run_are_not_chosen() -> None:
    problem = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 0.0) for _ in range(4)))
    measure, race = truth(problem)

    def failing(programs: Sequence[LayerTypes]) -> list[float]:
        return [
            math.inf if 0 in types.int8 else seconds
            for types, seconds in zip(programs, race(programs), strict=True)
        ]

    choice = LayerSearch(problem, measure, failing).best(0.1, within(0.1))
    assert choice is None or 0 not in choice.layers.int8


def test_the_first_programs_are_measured_without_time_for_more() -> None:
    problem = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 0.01) for _ in range(8)))
    measure, race = truth(problem)
    ticks = count()
    search = LayerSearch(problem, measure, race, seconds=0.5, clock=lambda: float(next(ticks)))
    choice = search.best(0.2, within(0.2))
    assert choice is not None
    assert len(choice.layers.int8) == 4


def test_greed_lets_the_layers_of_the_largest_errors_go() -> None:
    errors = [4.0, 1.0, 9.0, 2.0]

    def measure(types: LayerTypes) -> OutputError:
        return OutputError(sum(errors[number] for number in types.int8))

    assert greedy_layers(errors, measure, within(7.5)) == LayerTypes(frozenset({0, 1, 3}))
    assert greedy_layers(errors, measure, within(16.0)) == LayerTypes(frozenset(range(4)))
    assert greedy_layers(errors, measure, within(0.5)) is None
    assert greedy_layers([], measure, within(0.5)) is None


def test_greed_keeps_all_layers_where_fewer_err_more() -> None:
    def measure(types: LayerTypes) -> OutputError:
        return OutputError(0.0 if len(types.int8) == 4 else 1.0)

    assert greedy_layers([4.0, 1.0, 9.0, 2.0], measure, within(0.5)) == LayerTypes(frozenset(range(4)))
