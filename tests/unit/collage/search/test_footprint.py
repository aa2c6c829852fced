from __future__ import annotations

import pytest
from tests.cover_problems import plain_problem

from intarsia.collage.search import Piece
from intarsia.collage.search.footprint import Topology

# 0 -> 1 -> 3 -> 4, 0 -> 2 -> 3, 1 -> 4
DIAMOND = ((), (0,), (0,), (1, 2), (1, 3))


def topology(results: int = 0b10000) -> Topology:
    return Topology(plain_problem(DIAMOND, [Piece(0b11111, 0, 1.0)], results=results))


def test_reachability() -> None:
    assert topology().ancestors == [0, 0b1, 0b1, 0b111, 0b1111]
    assert topology().descendants == [0b11110, 0b11000, 0b11000, 0b10000, 0]
    assert topology().below(0b00100) == 0b11100
    assert topology().above(0b00100) == 0b00101


def test_boundary_of_a_set() -> None:
    footprint = topology().footprint(0b11010)
    assert footprint.low == 1
    assert footprint.local == 0b1101
    assert footprint.runs == ((1, 2), (3, 5))
    assert footprint.inputs == ((0, 0b00010), (2, 0b01000))
    assert footprint.leaving == ()
    assert footprint.is_single_exit


def test_a_tap_is_an_exit() -> None:
    footprint = topology().footprint(0b01110)
    assert footprint.leaving == (1, 3)
    assert not footprint.is_single_exit


def test_results_and_unused_values_are_exits() -> None:
    assert topology().footprint(0b10000).is_single_exit
    assert not topology(results=0b11000).footprint(0b11000).is_single_exit
    two_ends = Topology(plain_problem(((), ()), [Piece(0b11, 0, 1.0)], results=0b01))
    assert not two_ends.footprint(0b11).is_single_exit


def test_sets_that_are_not_convex_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1, 3\] are not convex"):
        topology().footprint(0b01011)
