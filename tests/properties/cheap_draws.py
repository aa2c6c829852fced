"""Draws from strategies that are made once: hypothesis checks and labels a new strategy at every draw.

A program takes more than a hundred draws, and the checks cost more than they.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

BOOLEANS: Final = st.booleans()


@cache
def integers(low: int, high: int) -> st.SearchStrategy[int]:
    """Return the one strategy of whole numbers between two bounds, both included."""
    return st.integers(low, high)


def choose(draw: st.DrawFn, items: Sequence[T]) -> T:
    """Draw an item of a sequence; hypothesis reduces towards the first.

    Args:
        draw: Hypothesis' source of choices.
        items: Items to choose from, at least one.
    """
    return items[draw(integers(0, len(items) - 1))]


def choose_some(draw: st.DrawFn, items: Sequence[T], fewest: int, most: int) -> list[T]:
    """Draw a number of items of a sequence, which may be the same.

    Args:
        draw: Hypothesis' source of choices.
        items: Items to choose from, at least one.
        fewest: The smallest number of items.
        most: The largest number of items.
    """
    return [choose(draw, items) for _ in range(draw(integers(fewest, most)))]
