from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cover_problems import plain_problem

from intarsia.collage.search import INVALID, Parameter, Piece, Transition

CHAIN = ((), (0,), (1,))
ONE = (Piece(0b111, 0, 1.0),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": (1.0,)}, "3 nodes, but 1 sizes"),
        ({"transition": Transition.free(2)}, "1 specs, but transitions between 2"),
        ({"operands": ((), (1,), (1,))}, "node 1 consumes"),
        ({"operands": ((), (0,), (-1,))}, "node 2 consumes"),
        ({"pieces": (Piece(0b1000, 0, 1.0),)}, "beyond the last one, 2"),
        ({"results": 0b1000}, "beyond the last one, 2"),
        ({"parameters": (Parameter(1.0, 0b1000),)}, "beyond the last one, 2"),
        ({"pieces": (Piece(0b1, 1, 1.0),)}, "spec beyond the last one, 0"),
        ({"conflicts": frozenset({(0, 1)})}, "spec beyond the last one, 0"),
        ({"conflicts": frozenset({(0, 0)})}, "conflict with itself"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(plain_problem(CHAIN, ONE), **changes)  # type: ignore[arg-type]  # wrong on purpose


def test_with_costs_changes_the_named_pieces_only() -> None:
    problem = plain_problem(
        CHAIN, [Piece(0b1, 0, None, 1.0), Piece(0b10, 0, None, 1.0), Piece(0b100, 0, 4.0)]
    )
    changed = problem.with_costs({0: 2.0, 1: INVALID})
    assert [piece.cost for piece in changed.pieces] == [2.0, INVALID, 4.0]
    assert problem.pieces[0].cost is None
