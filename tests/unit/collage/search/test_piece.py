from __future__ import annotations

import math

import pytest

from intarsia.collage.search import INVALID, Piece


def test_unknown_pieces_count_with_their_bound() -> None:
    piece = Piece(0b1, 0, bound=2.0)
    assert not piece.is_known
    assert not piece.is_invalid
    assert piece.floor == 2.0


def test_measured_pieces_count_with_their_cost() -> None:
    piece = Piece(0b1, 0, 3.0, bound=2.0)
    assert piece.is_known
    assert piece.floor == 3.0


def test_invalid_pieces_are_known() -> None:
    piece = Piece(0b1, 0, INVALID)
    assert piece.is_known
    assert piece.is_invalid


@pytest.mark.parametrize(
    ("mask", "spec", "cost", "bound"),
    [
        (0, 0, 1.0, 0.0),
        (1, -1, 1.0, 0.0),
        (1, 0, -1.0, 0.0),
        (1, 0, math.nan, 0.0),
        (1, 0, None, math.nan),
        (1, 0, None, -1.0),
        (1, 0, None, math.inf),
    ],
)
def test_what_cannot_be_compared_is_refused(mask: int, spec: int, cost: float | None, bound: float) -> None:
    with pytest.raises(ValueError, match="piece"):
        Piece(mask, spec, cost, bound)
