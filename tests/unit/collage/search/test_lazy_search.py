from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.cover_problems import network_problem, plain_problem, residual_chain

from intarsia.collage.search import (
    INVALID,
    CoverProblem,
    Infeasible,
    Piece,
    SearchResult,
    lazy_search,
    search,
)

pytestmark = pytest.mark.quick_tests(4)

CHAIN = ((), (0,), (1,))


def hidden(problem: CoverProblem, seed: int = 0, least: float = 0.7) -> CoverProblem:
    """The problem before anything was measured, with bounds of `least` to 1 times the cost."""
    rng = random.Random(seed)
    pieces = (
        replace(piece, cost=None, bound=(piece.cost or 0) * rng.uniform(least, 1)) for piece in problem.pieces
    )
    return replace(problem, pieces=tuple(pieces))


class Laboratory:
    """Measures by looking into the full problem; refuses to measure twice; closes after some pieces."""

    def __init__(self, problem: CoverProblem, closes_after: int = 10**9) -> None:
        self.problem = problem
        self.closes_after = closes_after
        self.measured: list[int] = []

    def __call__(self, pieces: Sequence[int]) -> Mapping[int, float | None]:
        assert not set(pieces) & set(self.measured)
        todo = pieces[: self.closes_after - len(self.measured)]
        self.measured += todo
        costs = {piece: self.problem.pieces[piece].cost for piece in todo}
        return {piece: None if cost == INVALID else cost for piece, cost in costs.items()}


def test_same_optimum_with_fewer_measurements() -> None:
    problem = network_problem(residual_chain(60))
    laboratory = Laboratory(problem)
    lazy = lazy_search(hidden(problem), laboratory)
    full = search(problem)
    assert isinstance(lazy.result, SearchResult)
    assert isinstance(full, SearchResult)
    assert lazy.result.best == full.best
    assert lazy.result.is_exact
    assert len(laboratory.measured) < 0.8 * len(problem.pieces)
    assert set(lazy.costs) == set(laboratory.measured)


def test_measuring_ahead_saves_rounds() -> None:
    problem = network_problem(residual_chain(40))
    strict, ahead = (lazy_search(hidden(problem), Laboratory(problem), ahead=part) for part in (0.0, 0.05))
    assert isinstance(strict.result, SearchResult)
    assert isinstance(ahead.result, SearchResult)
    assert strict.result.best == ahead.result.best
    assert ahead.rounds < strict.rounds
    assert len(ahead.costs) >= len(strict.costs)


def test_nothing_is_measured_that_cannot_matter() -> None:
    pieces = [Piece(1 << node, 0, 1.0) for node in range(3)]
    problem = plain_problem(CHAIN, [*pieces, Piece(0b11, 0, None, 5.0), Piece(0b110, 0, None, 1.5)])
    lazy = lazy_search(problem, lambda asked: dict.fromkeys(asked, 1.75))
    assert lazy.costs == {4: 1.75}
    assert lazy.rounds == 1
    assert isinstance(lazy.result, SearchResult)
    assert lazy.result.best.pieces == (0, 4)


def test_invalid_pieces_are_learnt() -> None:
    problem = plain_problem(
        CHAIN, [Piece(0b111, 0, None, 0.5), *(Piece(1 << node, 0, 1.0) for node in range(3))]
    )
    lazy = lazy_search(problem, dict.fromkeys)
    assert lazy.costs == {0: INVALID}
    assert isinstance(lazy.result, SearchResult)
    assert lazy.result.best.pieces == (1, 2, 3)


def test_budget_gives_the_best_known_cover_and_an_honest_gap() -> None:
    problem = network_problem(residual_chain(40))
    known = {index: piece.cost for index, piece in enumerate(problem.pieces) if piece.mask.bit_count() == 1}
    start = hidden(problem).with_costs({index: cost for index, cost in known.items() if cost is not None})
    optimum = search(problem)
    assert isinstance(optimum, SearchResult)
    costs = []
    for budget in (0, 30, 200):
        laboratory = Laboratory(problem)
        lazy = lazy_search(start, laboratory, budget)
        assert isinstance(lazy.result, SearchResult)
        assert len(laboratory.measured) <= budget
        assert all(piece in known or piece in lazy.costs for piece in lazy.result.best.pieces)
        assert lazy.result.lower_bound <= optimum.best.cost <= lazy.result.best.cost
        costs.append(lazy.result.best.cost)
    assert costs[0] > costs[2]


def test_a_laboratory_that_closes_ends_the_search() -> None:
    problem = network_problem(residual_chain(20))
    laboratory = Laboratory(problem, closes_after=40)
    lazy = lazy_search(hidden(problem), laboratory)
    assert len(lazy.costs) == 40
    assert len(laboratory.measured) == 40
    if isinstance(lazy.result, SearchResult):
        assert not lazy.result.is_exact


def test_nothing_known_is_infeasible_not_an_error() -> None:
    problem = hidden(network_problem(residual_chain(10)))
    lazy = lazy_search(problem, lambda _: {})
    assert isinstance(lazy.result, Infeasible)
    assert lazy.result.only_invalid == tuple(range(10))


def test_everything_invalid_is_infeasible() -> None:
    problem = hidden(network_problem(residual_chain(4)))
    lazy = lazy_search(problem, dict.fromkeys)
    assert isinstance(lazy.result, Infeasible)
    assert lazy.result.is_proven
