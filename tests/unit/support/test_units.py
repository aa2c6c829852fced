import math

import pytest
from tests.each_case import each_case

from intarsia.measure.timing.interleaved import RatioInterval
from intarsia.measure.timing.ratio_text import ratio_text
from intarsia.support.units import (
    cache_text,
    duration_text,
    error_text,
    interval_text,
    size_text,
)


@each_case(
    ("seconds", "text"),
    [
        (0.0, "0.00 us"),
        (7.0e-8, "0.07 us"),
        (3.4e-6, "3.40 us"),
        (9.996e-6, "10.0 us"),
        (812.4e-6, "812 us"),
        (999.4e-6, "999 us"),
        (999.6e-6, "1.00 ms"),
        (5.123e-3, "5.12 ms"),
        (0.25, "250 ms"),
        (0.9996, "1.00 s"),
        (75.0, "75.0 s"),
        (math.inf, "-"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_intervals() -> None:
    assert interval_text(5.1e-3, 5.2e-3) == "5.10 ms to 5.20 ms"
    assert interval_text(0.0, math.inf) == "-"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (RatioInterval(1.0, 1.0, 1.0), "1.000"),
        (RatioInterval(1.034, 1.02, 1.0506), "1.034 (1.020 to 1.051)"),
        (RatioInterval(2.0, 0.0, math.inf), "2.000 (too few rounds for an interval)"),
    ],
)
def test_ratios(ratio: RatioInterval, text: str) -> None:
    assert ratio_text(ratio) == text


@pytest.mark.parametrize(("error", "text"), [(0.0, "0"), (1.234e-6, "1.2e-06"), (math.inf, "inf")])
def test_errors(error: float, text: str) -> None:
    assert error_text(error) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 KB"),
        (25_562, "25.6 KB"),
        (5_030_000, "5.03 MB"),
        (548_000_000, "548 MB"),
        (1_500_000_000, "1.50 GB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "unknown"), (32768, "32 KiB"), (1 << 20, "1 MiB"), (37486592, "35.75 MiB")]
)
def test_caches(size: int, text: str) -> None:
    assert cache_text(size) == text
