"""Repetitions in a sequence of symbols.

Source: Main and Lorentz, "An O(n log n) algorithm for finding all repetitions in a string" (1984); here with
hashes in place of their tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

_PRIME: Final = (1 << 61) - 1
"""Modulus of the hashes, a Mersenne prime: different stretches collide with a probability of n / 2**61."""
_BASE: Final = 0x9E3779B97F4A7C15 % _PRIME
"""Base of the hashes: 2**64 over the golden ratio; any large number without structure would do."""


@dataclass(frozen=True, slots=True)
class Run:
    """A periodic stretch: each symbol from `start + period` to `stop` equals the one `period` before it.

    Attributes:
        start: Index of the first symbol.
        stop: Index after the last symbol; at least two periods further.
        period: The least number of symbols after which they repeat.
    """

    start: int
    stop: int
    period: int


def find_runs(symbols: Sequence[int]) -> Iterator[Run]:
    """Every longest stretch that repeats, by period and then in order. n log^2 n at most.

    Each run of a period p has two anchors in it, multiples of p, from which it is extended both ways. What
    lies well inside a run of a smaller period is no run of its own.

    Args:
        symbols: Whole numbers from 0 on.
    """
    text = _HashedText(symbols)
    count = len(symbols)
    covered = [0] * count  # up to where a run of a smaller period reaches that begins at or before this place
    for period in range(1, count // 2 + 1):
        stop = 0
        for anchor in range(0, count - period, period):
            other = anchor + period
            is_inside_run = covered[max(0, anchor - period)] >= min(count, other + period)
            if symbols[anchor] != symbols[other] or stop > other or is_inside_run:
                continue
            start = anchor - text.common_before(anchor, other)
            end = other + text.common_behind(anchor, other)
            if end - start >= 2 * period:
                stop = end
                if covered[start] < end:
                    yield Run(start, end, period)
                    covered[start:end] = [max(reach, end) for reach in covered[start:end]]


class _HashedText:
    """A sequence with constant-time comparison of stretches by polynomial hashes (Karp and Rabin)."""

    def __init__(self, symbols: Sequence[int]) -> None:
        self._count = len(symbols)
        self._hash = list(accumulate(symbols, lambda h, s: (h * _BASE + s + 1) % _PRIME, initial=0))
        self._power = list(accumulate(range(self._count), lambda p, _: p * _BASE % _PRIME, initial=1))

    def common_behind(self, left: int, right: int) -> int:
        """Return the length of the longest common stretch that begins at two indices."""
        return self._longest(self._count - right, lambda n: (left, right, n))

    def common_before(self, left: int, right: int) -> int:
        """Return the length of the longest common stretch that ends before two indices."""
        return self._longest(left, lambda n: (left - n, right - n, n))

    def _longest(self, most: int, stretch: Callable[[int], tuple[int, int, int]]) -> int:
        low = 0
        while low < most:
            middle = (low + most + 1) // 2
            left, right, length = stretch(middle)
            if self._of(left, length) == self._of(right, length):
                low = middle
            else:
                most = middle - 1
        return low

    def _of(self, start: int, length: int) -> int:
        return (self._hash[start + length] - self._hash[start] * self._power[length]) % _PRIME
