"""Ways to split a loop without a rest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors of a positive number, ascending."""
    small = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return (*small, *(number // each for each in reversed(small) if each * each != number))


@lru_cache(maxsize=4096)
def factorizations(extent: int, count: int, most_innermost: int) -> tuple[tuple[int, ...], ...]:
    """All lengths f1 ... fn whose product divides an extent, in the order of dictionaries.

    What is left is the outermost part, so that a drawn tuple is no uniformly drawn shape.

    Args:
        extent: Of the loop, at least 1.
        count: How many lengths, at least 1.
        most_innermost: Of the last length.
    """
    return tuple(_tuples(extent, count, most_innermost))


def rounded_extents(extent: int) -> tuple[int, ...]:
    """Multiples of 4, 8 and 16 just above an extent that add at most an eighth of it."""
    found = {-(-extent // step) * step for step in (4, 8, 16)} - {extent}
    return tuple(sorted(each for each in found if 8 * (each - extent) <= extent))


def _tuples(left: int, count: int, most_innermost: int) -> Iterator[tuple[int, ...]]:
    for factor in divisors(left):
        if count > 1:
            for rest in _tuples(left // factor, count - 1, most_innermost):
                yield factor, *rest
        elif factor <= most_innermost:
            yield (factor,)
