from __future__ import annotations

import pytest
from tests.brute_force_covers import all_covers
from tests.cover_problems import plain_problem, random_problem

from intarsia.collage.search import INVALID, CoverProblem, Parameter, Piece, Transition, cost_of, faults_of

# 0 -> 1 -> 3, 0 -> 2 -> 3; 3 and 1 are results
DIAMOND = ((), (0,), (0,), (1, 2))


def diamond() -> CoverProblem:
    return plain_problem(
        DIAMOND,
        [Piece(0b0001, 0, 1.0), Piece(0b0110, 1, 2.0), Piece(0b1000, 0, 4.0), Piece(0b1110, 1, 5.0)],
        sizes=(10.0, 20.0, 40.0, 80.0),
        results=0b1010,
        dispatch=(0.5, 0.25),
        transition=Transition.of([[0, 1, 2], [3, 0, 4], [5, 6, 0]], [[0, 0.1, 0], [0.01, 0, 0], [0, 0, 0]]),
        parameters=(Parameter(7.0, 0b0111),),
    )


def test_cost_by_hand() -> None:
    inside = 1.0 + 2.0 + 4.0
    dispatch = 0.5 + 0.25 + 0.5
    into_middle = 1 + 0.1 * 10  # value 0 is consumed by both nodes of the piece, and paid once
    into_last = (3 + 0.01 * 20) + (3 + 0.01 * 40)
    parameter = 5 + 6  # consumed by pieces 0 and 1
    results = 4 + 2
    expected = inside + dispatch + into_middle + into_last + parameter + results
    assert cost_of(diamond(), (0, 1, 2)) == pytest.approx(expected)
    assert cost_of(diamond(), (0, 3)) == pytest.approx(1 + 5 + 0.75 + 2 + 11 + 8)


def test_brute_force_by_hand() -> None:
    covers = all_covers(diamond())
    assert [cover.pieces for cover in covers] == [(0, 3), (0, 1, 2)]
    assert [cover.cost for cover in covers] == pytest.approx([27.75, 33.85])


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("seed", range(30))
def test_brute_force_and_cost_of_agree(seed: int) -> None:
    problem = random_problem(seed, 7)
    for cover in all_covers(problem):
        assert cover.cost == pytest.approx(cost_of(problem, cover.pieces))
        assert faults_of(problem, cover.pieces) == ()


def test_faults() -> None:
    problem = diamond()
    assert faults_of(problem, (0, 1, 2)) == ()
    assert faults_of(problem, (0, 1)) == ("no piece covers [3]",)
    assert faults_of(problem, (0, 1, 3)) == ("piece 3 overlaps others at [1, 2]",)
    assert faults_of(problem.with_costs({3: INVALID}), (0, 3)) == ("piece 3 is invalid",)


def test_conflicts_are_faults() -> None:
    pieces = [Piece(0b01, 0, 1.0), Piece(0b10, 1, 1.0)]
    problem = plain_problem(((), (0,)), pieces, conflicts=frozenset({(0, 1)}))
    assert faults_of(problem, (0, 1)) == ("specs (0, 1) are in conflict",)


def test_pieces_that_need_each_other_are_a_fault() -> None:
    crossed = plain_problem(((), (), (0,), (1,)), [Piece(0b1001, 0, 1.0), Piece(0b0110, 0, 1.0)])
    (fault,) = faults_of(crossed, (0, 1))
    assert "need each other" in fault
    assert all_covers(crossed) == []
