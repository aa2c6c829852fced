from __future__ import annotations

import gc
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fake_clock import FakeClock

from intarsia.measure.timing.timing import MAX_CALLS, Timing, TimingPolicy, time_function, warm_up
from intarsia.support.errors import UsageError

MS = 1_000_000
POLICY = TimingPolicy(
    warmup_seconds=0.0, warmup_calls=2, repeats=10, min_repeat_seconds=0.0, max_seconds=1000.0
)


def test_a_steady_function() -> None:
    clock = FakeClock()
    timing = time_function(clock.taking(3 * MS), POLICY, clock)
    assert timing == Timing((0.003,) * 10, calls=10)
    assert (timing.median, timing.spread, timing.low, timing.high) == (0.003, 0.0, 0.003, 0.003)


def test_warm_up_is_not_timed() -> None:
    clock = FakeClock()
    costs = iter([500 * MS, 500 * MS] + [MS] * 10)
    assert time_function(clock.taking(costs.__next__), POLICY, clock).samples == (0.001,) * 10


def test_warm_up_lasts_for_both_its_seconds_and_its_calls() -> None:
    clock = FakeClock()
    warm_up(clock.taking(MS), replace(POLICY, warmup_seconds=0.05), clock)
    assert clock() == 50 * MS
    clock = FakeClock()
    warm_up(clock.taking(100 * MS), replace(POLICY, warmup_seconds=0.05, warmup_calls=4), clock)
    assert clock() == 400 * MS


def test_warm_up_uses_a_quarter_of_the_budget_at_most() -> None:
    clock = FakeClock()
    warm_up(clock.taking(1000 * MS), replace(POLICY, warmup_calls=50, max_seconds=8.0), clock)
    assert clock() == 2000 * MS


def test_calls_are_grouped_to_the_minimal_duration() -> None:
    clock = FakeClock()
    timing = time_function(clock.taking(3 * MS), replace(POLICY, min_repeat_seconds=0.01), clock)
    assert timing.calls == 10 * 4
    assert timing.median == pytest.approx(0.003)


def test_the_first_calls_do_not_decide_how_many_are_grouped() -> None:
    clock = FakeClock()
    costs = iter([9000 * MS] * 2 + [MS] * 2)
    policy = replace(POLICY, warmup_calls=4, min_repeat_seconds=0.01)
    assert warm_up(clock.taking(costs.__next__), policy, clock) == 10


def test_a_function_that_got_faster_is_called_until_the_minimal_duration_has_passed() -> None:
    clock = FakeClock()
    costs = iter([5 * MS] * 2 + [MS] * 100)
    timing = time_function(clock.taking(costs.__next__), replace(POLICY, min_repeat_seconds=0.009), clock)
    assert timing.calls == 10 * 10  # groups of two, five of them
    assert timing.samples == pytest.approx([0.001] * 10)


def test_a_function_that_takes_no_time_ends_and_has_a_positive_time() -> None:
    clock = FakeClock()
    policy = replace(POLICY, repeats=1, min_repeats=1, min_repeat_seconds=0.001)
    timing = time_function(clock.taking(0), policy, clock)
    assert timing.calls == MAX_CALLS
    assert timing.median == pytest.approx(1e-9 / MAX_CALLS)


def test_the_budget_ends_the_repeats_before_it_is_exceeded() -> None:
    clock = FakeClock()
    timing = time_function(clock.taking(100 * MS), replace(POLICY, max_seconds=1.05), clock)
    assert len(timing.samples) == 8  # and two calls of warm-up: the next one would end at 1.1 s
    assert clock() == 1000 * MS


def test_the_minimum_of_repeats_is_made_whatever_the_budget() -> None:
    clock = FakeClock()
    timing = time_function(clock.taking(100 * MS), replace(POLICY, max_seconds=0.0, min_repeats=7), clock)
    assert len(timing.samples) == 7


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_what_the_function_raises_propagates_and_garbage_collection_goes_on(
    error: type[BaseException],
) -> None:
    calls = []

    def function() -> None:
        calls.append(gc.isenabled())
        if len(calls) == 5:
            raise error

    assert gc.isenabled()
    with pytest.raises(error):
        time_function(function, POLICY, FakeClock())
    assert gc.isenabled()
    assert calls == [True, True, False, False, False]


def test_garbage_collection_stays_off_where_it_was_off() -> None:
    clock = FakeClock()
    gc.disable()
    try:
        time_function(clock.taking(MS), POLICY, clock)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_spread_is_the_interquartile_range_over_the_median() -> None:
    assert Timing((1.0, 2.0, 3.0, 4.0, 5.0), calls=5).spread == pytest.approx(2 / 3)
    assert Timing((7.0,), calls=1).spread == 0.0


def test_a_short_timing_has_no_bounds() -> None:
    timing = Timing((1.0,) * 5, calls=5)
    assert (timing.low, timing.high) == (0.0, math.inf)


def test_a_timing_without_samples() -> None:
    with pytest.raises(ValueError, match=r"^a timing needs at least one sample$"):
        Timing((), calls=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"warmup_seconds": -1.0}, "warmup_seconds = -1.0, expected a finite number of at least 0"),
        ({"max_seconds": math.nan}, "max_seconds = nan, expected a finite number of at least 0"),
        (
            {"min_repeat_seconds": math.inf},
            "min_repeat_seconds = inf, expected a finite number of at least 0",
        ),
        ({"min_repeats": 0}, "min_repeats = 0, expected at least 1"),
        ({"repeats": 5}, "repeats = 5, expected at least min_repeats = 6"),
    ],
)
def test_a_policy_that_makes_no_sense(changes: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        replace(TimingPolicy(), **changes)  # type: ignore[arg-type]  # wrong values are what is tested
    assert str(caught.value) == f"the timing policy has {message}"


@settings(deadline=None)
@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=50))
def test_the_interval_contains_the_median(samples: list[float]) -> None:
    timing = Timing(tuple(samples), calls=len(samples))
    assert 0 <= timing.low <= timing.median <= timing.high
    assert timing.spread >= 0
