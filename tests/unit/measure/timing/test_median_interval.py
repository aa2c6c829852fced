from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intarsia.measure.timing.median_interval import SMALLEST_SAMPLE, median_interval


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # Ranks from the table of distribution-free 95 % intervals for the median (binomial(n, 1/2)).
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (15, 4, 12), (20, 6, 15), (30, 10, 21), (100, 40, 61)],
)
def test_ranks(count: int, low: int, high: int) -> None:
    assert median_interval(range(count, 0, -1)) == (low, high)


@pytest.mark.parametrize("count", range(SMALLEST_SAMPLE))
def test_a_small_sample_has_no_interval(count: int) -> None:
    assert median_interval([1.0] * count) == (-math.inf, math.inf)


def test_a_lower_confidence_needs_fewer_values() -> None:
    assert median_interval([3.0, 1.0, 2.0], confidence=0.75) == (1.0, 3.0)
    assert median_interval([3.0, 1.0], confidence=0.75) == (-math.inf, math.inf)


def test_large_samples_do_not_overflow() -> None:
    low, high = median_interval(range(5000))
    # The normal approximation: 2500 -+ 1.96 * sqrt(5000) / 2.
    assert low == pytest.approx(2430, abs=2)
    assert high == pytest.approx(2569, abs=2)


@pytest.mark.parametrize("count", [6, 15, 30])
def test_it_covers_the_median_as_often_as_it_says(count: int) -> None:
    generator = random.Random(count)
    trials = 2000
    covered = 0
    for _ in range(trials):
        low, high = median_interval([generator.paretovariate(1.1) for _ in range(count)])
        covered += low <= 2 ** (1 / 1.1) <= high
    assert 0.94 <= covered / trials <= 0.985


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_it_contains_the_middle_and_mirrors(values: list[float]) -> None:
    low, high = median_interval(values)
    middle = sorted(values)[len(values) // 2]
    assert low <= middle <= high
    assert median_interval([-value for value in values]) == (-high, -low)
