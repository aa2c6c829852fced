from __future__ import annotations

import pytest
from tests.fake_clock import FakeClock

from intarsia.measure.timing.clock import MONOTONIC_CLOCK


def test_the_default_clock_counts_whole_nanoseconds_and_never_goes_back() -> None:
    readings = [MONOTONIC_CLOCK() for _ in range(1000)]
    assert all(isinstance(reading, int) for reading in readings)
    assert readings == sorted(readings)


def test_a_fake_clock_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock(now=5)
    assert (clock(), clock()) == (5, 5)
    clock.advance(7)
    assert clock() == 12


def test_a_function_takes_the_time_it_was_given() -> None:
    clock = FakeClock()
    function = clock.taking(30)
    function()
    function()
    assert clock() == 60


def test_the_time_may_be_drawn_at_each_call() -> None:
    clock = FakeClock()
    function = clock.taking(iter([1, 10, 100]).__next__)
    readings = []
    for _ in range(3):
        function()
        readings.append(clock())
    assert readings == [1, 11, 111]


def test_time_never_goes_back() -> None:
    with pytest.raises(ValueError, match=r"^a clock cannot go back by 3 ns$"):
        FakeClock().advance(-3)
