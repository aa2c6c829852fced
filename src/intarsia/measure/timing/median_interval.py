"""How well a sample pins down the median it was drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

CONFIDENCE = 0.95
SMALLEST_SAMPLE = 6
"""The fewest values with a 95 % interval of the median: 1 - 2 / 2**6 = 0.97, but 1 - 2 / 2**5 = 0.94."""

_DENOMINATOR = 1_000_000  # a confidence is taken as a whole number of millionths, so that the sums stay exact


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval between two values of the sample that covers the true median with at least `confidence`.

    The number of values below the true median is binomial(n, 1/2) whatever the distribution, so the interval
    needs no assumption about the noise except that the values are independent. Outliers do not move it, and
    it commutes with monotone functions: the interval of the logarithms is the logarithm of the interval.
    Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, section 7.1.

    Returns:
        The ends of the interval; (-inf, inf) when the sample is too small for this confidence.
    """
    dropped = _dropped_values(len(values), round(confidence * _DENOMINATOR))
    if dropped is None:
        return -math.inf, math.inf
    ordered = sorted(values)
    return ordered[dropped], ordered[-1 - dropped]


@lru_cache(maxsize=1024)
def _dropped_values(count: int, confidence: int) -> int | None:
    """Values to drop at each end: the largest k with 2 P(binomial(count, 1/2) <= k) <= 1 - confidence."""
    allowed = (
        _DENOMINATOR - confidence
    ) << count  # both sides of the inequality times 2**count and the denominator
    below, ways, dropped = 0, 1, None
    for successes in range((count + 1) // 2):
        below += ways
        if 2 * below * _DENOMINATOR > allowed:
            break
        dropped = successes
        ways = ways * (count - successes) // (successes + 1)
    return dropped
