from __future__ import annotations

from tests.cover_problems import Operands, plain_problem

from intarsia.collage.search import Piece
from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.precedence import Precedence

# Three chains of two nodes: 0 -> 3, 1 -> 4, 2 -> 5
CHAINS: Operands = ((), (), (), (0,), (1,), (2,))
ALL = 0b111111


def precedence(operands: Operands, *masks: int) -> Precedence:
    problem = plain_problem(operands, [Piece(mask, 0, 1.0) for mask in masks])
    singles = tuple(Piece(1 << node, 0, 9.0) for node in range(problem.size))
    return Precedence(PieceTable(plain_problem(operands, problem.pieces + singles)))


def test_two_pieces_that_need_each_other_are_refused() -> None:
    order = precedence(CHAINS, 0b010001, 0b001010)
    pairs = order.extended((), 0, ALL ^ 0b010001)
    assert pairs == ((0b000010, 0b001000),)
    assert order.extended(pairs, 1, 0b100100) is None


def test_cycles_of_three_are_seen_before_they_close() -> None:
    # 0 with 4, 1 with 5, 2 with 3: each of them needs another one
    order = precedence(CHAINS, 0b010001, 0b100010, 0b001100)
    pairs = order.extended((), 0, 0b101110)
    assert pairs is not None
    pairs = order.extended(pairs, 1, 0b001100)
    assert pairs == ((0b000100, 0b001000),)
    assert order.extended(pairs, 2, 0) is None


def test_single_exits_leave_nothing_to_remember() -> None:
    # 0 -> 2, 1 -> 2 -> 3: the piece {0, 2} waits for 1, but a path through nodes says so already
    order = precedence(((), (), (0, 1), (2,)), 0b0101)
    assert order.extended((), 0, 0b1010) == ()


def test_pieces_that_wait_for_nothing_leave_nothing_to_remember() -> None:
    order = precedence(CHAINS, 0b000011)
    assert order.extended((), 0, 0b111100) == ()
