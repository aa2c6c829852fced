from __future__ import annotations

import math
from itertools import pairwise

import pytest
from tests.brute_force_covers import all_covers
from tests.cover_problems import inception, network_problem, plain_problem, random_problem, residual_chain

from intarsia.collage.search import CoverProblem, Piece, cost_of, search
from intarsia.collage.search.dual_bound import DualBound
from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.search_result import SearchResult

pytestmark = pytest.mark.quick_tests(24)


def bound_of(problem: CoverProblem) -> DualBound:
    return DualBound(PieceTable(problem), [piece.floor for piece in problem.pieces])


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize("seed", range(150))
def test_no_cover_is_cheaper_at_any_time(seed: int) -> None:
    problem = random_problem(seed, 8)
    cheapest = min((cover.cost for cover in all_covers(problem)), default=math.inf)
    bound = bound_of(problem)
    for _ in range(10):
        assert bound.value <= cheapest + 1e-9
        bound.improve(1, stalls=False)


@pytest.mark.quick_cases(15)
@pytest.mark.parametrize("seed", range(40))
def test_reduced_costs_add_up_to_the_cost(seed: int) -> None:
    problem = random_problem(seed, 8)
    table = PieceTable(problem)
    bound = DualBound(table, [piece.floor for piece in problem.pieces])
    bound.improve(3, stalls=False)
    prices = bound.prices(math.inf)
    for cover in all_covers(problem):
        owner = {
            node: piece
            for piece in cover.pieces
            for node in range(problem.size)
            if problem.pieces[piece].mask >> node & 1
        }
        total = prices.bound + sum(prices.pieces[piece] for piece in cover.pieces)
        for piece in cover.pieces:
            for value, port in table.inputs[piece]:
                total += prices.regrets[port][table.classes[table.spec_of(owner[value])]]
        assert total == pytest.approx(cost_of(problem, cover.pieces))


def test_sweeps_never_lose() -> None:
    bound = bound_of(network_problem(inception(60)))
    values = []
    for _ in range(30):
        values.append(bound.value)
        bound.improve(1, stalls=False)
    assert all(after >= before * (1 - 1e-9) for before, after in pairwise(values))


def test_one_sweep_is_exact_on_a_chain() -> None:
    problem = network_problem(((), *((node,) for node in range(59))))
    bound = bound_of(problem)
    bound.improve(1)
    result = search(problem)
    assert isinstance(result, SearchResult)
    assert bound.value == pytest.approx(result.best.cost, rel=1e-12)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("operands", [residual_chain(150), inception(100)])
def test_bound_is_within_one_percent_on_networks(operands: tuple[tuple[int, ...], ...]) -> None:
    problem = network_problem(operands)
    bound = bound_of(problem)
    bound.improve(40, stalls=False)
    result = search(problem)
    assert isinstance(result, SearchResult)
    assert 0.99 * result.best.cost <= bound.value <= result.best.cost * (1 + 1e-9)


def test_raised_costs_raise_the_bound() -> None:
    problem = plain_problem(((), (0,)), [Piece(0b11, 0, 2.0), Piece(0b01, 0, 3.0), Piece(0b10, 0, 4.0)])
    bound = bound_of(problem)
    assert bound.value == 2.0
    bound.raise_cost(0, math.inf)
    bound.settle()
    assert bound.value == 7.0
    assert 0 not in bound.prices(math.inf).pieces
