"""Factorizations of extents, for splits without a remainder."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """Return all divisors of a positive number, ascending."""
    # Divisors come in pairs around the square root, so half of them are enough.
    small = [divisor for divisor in range(1, int(number**0.5) + 1) if number % divisor == 0]
    return (*small, *(number // divisor for divisor in reversed(small) if divisor * divisor != number))


@lru_cache(maxsize=4096)
def factorizations(extent: int, count: int, most_innermost: int) -> tuple[tuple[int, ...], ...]:
    """Return all lengths f1 ... fn with a product that divides an extent, in lexicographic order.

    The quotient is the outermost part. A uniformly drawn tuple is thus not a uniformly drawn shape.

    Args:
        extent: Extent of the loop, at least 1.
        count: Number of lengths, at least 1.
        most_innermost: Maximum of the last length.
    """
    return tuple(_tuples(extent, count, most_innermost))


def rounded_extents(extent: int) -> tuple[int, ...]:
    """Return the multiples of 4, 8 and 16 just above an extent that add at most an eighth of it."""
    rounded = {-(-extent // step) * step for step in (4, 8, 16)} - {extent}
    return tuple(sorted(candidate for candidate in rounded if 8 * (candidate - extent) <= extent))


def _tuples(left: int, count: int, most_innermost: int) -> Iterator[tuple[int, ...]]:
    for factor in divisors(left):
        if count > 1:
            for rest in _tuples(left // factor, count - 1, most_innermost):
                yield factor, *rest
        elif factor <= most_innermost:
            yield (factor,)
