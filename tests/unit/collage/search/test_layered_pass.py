from __future__ import annotations

import math

import pytest
from tests.cover_problems import inception, network_problem, plain_problem

from intarsia.collage.search import CoverProblem, Piece, Transition, cost_of
from intarsia.collage.search.dominance import Dominance
from intarsia.collage.search.dual_bound import DualBound
from intarsia.collage.search.frontier import NOTHING, Entry, Frontier
from intarsia.collage.search.layered_pass import LayeredPass, PassResult
from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.precedence import Precedence


def run(problem: CoverProblem, width: int, ceiling: float = math.inf) -> tuple[float, PassResult]:
    """The bound that the costs are reduced by, and the result of one pass."""
    table = PieceTable(problem)
    bound = DualBound(table, [piece.floor for piece in problem.pieces])
    prices = bound.prices(math.inf)
    layered = LayeredPass(table, prices, Precedence(table), ceiling, 1)
    return bound.value, layered.run(width, width, 10**9)


def test_what_is_dropped_bounds_what_is_missed() -> None:
    problem = network_problem(inception(60))
    bound, exact = run(problem, 10**9)
    assert math.isinf(exact.dropped)
    optimum = cost_of(problem, exact.covers[0])
    for width in (1, 2, 8, 32):
        _, narrow = run(problem, width)
        assert narrow.expanded <= width * problem.size
        best = min((cost_of(problem, cover) for cover in narrow.covers), default=math.inf)
        assert best >= optimum * (1 - 1e-9)
        assert min(best, bound + narrow.dropped) <= optimum * (1 + 1e-9)


def test_nothing_above_the_ceiling_is_found() -> None:
    problem = network_problem(inception(40))
    bound, exact = run(problem, 10**9)
    regret = cost_of(problem, exact.covers[0]) - bound
    assert run(problem, 10**9, regret * 1.001)[1].covers == exact.covers
    below = run(problem, 10**9, regret * 0.999)[1]
    assert below.covers == ()
    assert math.isinf(below.dropped)
    assert below.expanded < exact.expanded


def test_the_budget_narrows_the_rest_of_a_pass() -> None:
    table = PieceTable(problem := network_problem(inception(60)))
    bound = DualBound(table, [piece.floor for piece in problem.pieces])
    layered = LayeredPass(table, bound.prices(math.inf), Precedence(table), math.inf, 1)
    result = layered.run(width=64, narrow=2, budget=100)
    assert result.expanded <= 100 + 64 + 2 * problem.size
    assert len(result.covers) == 1


@pytest.mark.parametrize(
    ("readers", "dearer", "keep", "left"),
    [(1, 2.5, 1, 1), (1, 1.5, 1, 2), (1, 2.5, 2, 2), (2, 2.5, 1, 2), (2, 4.5, 1, 1)],
)
def test_states_that_another_state_can_replace_are_dropped(
    readers: int, dearer: float, keep: int, left: int
) -> None:
    """Each crossing from class 0 costs at most 2 more than from class 1."""
    transition = Transition.of([[0, 2, 0], [0, 0, 0], [0, 0, 0]], [[0.0] * 3] * 3)
    operands = ((), *((0,) for _ in range(readers)))
    pieces = [Piece(1 << node, spec, 1.0) for node in range(len(operands)) for spec in range(2)]
    table = PieceTable(plain_problem(operands, pieces, transition=transition))
    prices = DualBound(table, [1.0] * len(pieces)).prices(math.inf)
    start: Entry = (0.0, None, -1)
    frontier = Frontier(1, 0, (0,))
    frontier.offer(((0,), NOTHING), (1.0, start, 0), keep)
    frontier.offer(((1,), NOTHING), (1.0 + dearer, start, 1), keep)
    Dominance(table, prices, keep).thin(frontier)
    assert len(frontier.states) == left


def test_the_cheapest_ways_to_a_state_are_kept_in_order() -> None:
    frontier = Frontier(1, 0, ())
    start: Entry = (0.0, None, -1)
    for number, cost in enumerate((3.0, 1.0, 2.0, 1.0)):
        frontier.offer(((), NOTHING), (cost, start, number), 3)
    assert [(entry[0], entry[2]) for entry in frontier.states[(), NOTHING]] == [(1.0, 1), (1.0, 3), (2.0, 2)]
    assert frontier.best == 1.0
