"""What other covers cost than the chosen one, against brute force."""

from __future__ import annotations

import math

import pytest
from tests.brute_force_covers import all_covers
from tests.cover_problems import network_problem, plain_problem, random_problem, residual_chain

from intarsia.collage.rivals import Rivals
from intarsia.collage.search import CoverProblem, Piece, SearchResult, search

SEEDS = range(150)


def chosen_of(problem: CoverProblem) -> Rivals | None:
    """The second cheapest cover, so that others may cost less; the cheapest if there is no other."""
    covers = all_covers(problem)
    return Rivals(problem, covers[min(1, len(covers) - 1)].pieces) if covers else None


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_on_the_cheapest_cover_with_a_piece(seed: int) -> None:
    problem = random_problem(seed, 7)
    rivals = chosen_of(problem)
    if rivals is None:
        return
    covers = all_covers(problem)
    at_least = rivals.at_least()
    for piece in range(len(problem.pieces)):
        costs = [cover.cost for cover in covers if piece in cover.pieces]
        truth = min(costs, default=math.inf) - rivals.cost
        assert at_least.get(piece, math.inf) <= truth + 1e-9
        found = rivals.with_piece(piece) if not problem.pieces[piece].is_invalid else None
        assert found is None or found >= truth - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_piece_is_brought_in_at_the_least_cost_that_leaves_the_rest(seed: int) -> None:
    problem = random_problem(seed, 7)
    rivals = chosen_of(problem)
    if rivals is None:
        return
    for piece in range(len(problem.pieces)):
        mask = problem.pieces[piece].mask
        stay = {one for one in rivals.chosen if not problem.pieces[one].mask & mask}
        costs = [cover.cost for cover in all_covers(problem) if {piece, *stay} <= set(cover.pieces)]
        found = rivals.with_piece(piece) if not problem.pieces[piece].is_invalid else None
        assert (found is None) == (not costs)
        assert found is None or found == pytest.approx(min(costs) - rivals.cost, abs=1e-9)


@pytest.mark.quick_cases(16)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_runner_up_of_a_piece_is_the_cheapest_one(seed: int) -> None:
    problem = random_problem(seed, 7)
    rivals = chosen_of(problem)
    if rivals is None:
        return
    for piece in rivals.chosen:
        stay = set(rivals.chosen) - {piece}
        others = [
            cover for cover in all_covers(problem) if stay <= set(cover.pieces) and piece not in cover.pieces
        ]
        found = rivals.without_piece(piece)
        assert (found is None) == (not others)
        if found is not None:
            assert found.cost == pytest.approx(others[0].cost - rivals.cost, abs=1e-9)
            union = sum(problem.pieces[one].mask for one in found.pieces)
            assert union == problem.pieces[piece].mask


def test_the_rest_of_a_cover_is_filled_in() -> None:
    pieces = [Piece(0b01, 0, 1.0), Piece(0b10, 0, 2.0), Piece(0b10, 1, 1.5), Piece(0b11, 1, 9.0)]
    problem = plain_problem(((), (0,)), pieces)
    rivals = Rivals.of(problem, [0])
    assert rivals is not None
    assert rivals.chosen == (0, 2)
    assert Rivals.of(problem, [0, 3]) is None


@pytest.mark.slow
def test_a_large_network() -> None:
    problem = network_problem(residual_chain(300))
    found = search(problem)
    assert isinstance(found, SearchResult)
    rivals = Rivals(problem, found.best.pieces)
    at_least = rivals.at_least()
    for piece in rivals.chosen[:20]:
        runner_up = rivals.without_piece(piece)
        assert runner_up is not None
        assert runner_up.cost >= -1e-12
    for piece in range(0, len(problem.pieces), 97):
        loss = rivals.with_piece(piece)
        assert loss is None or loss >= at_least[piece] - 1e-12
