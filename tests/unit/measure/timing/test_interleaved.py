from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fake_clock import FakeClock

from intarsia.measure.timing.interleaved import (
    Comparison,
    RatioInterval,
    Round,
    round_orders,
    time_interleaved,
)
from intarsia.measure.timing.timing import Timing, TimingPolicy

pytestmark = pytest.mark.quick_tests(14, also=["test_a_comparison_of_different_numbers_of_rounds"])

MS = 1_000_000
POLICY = TimingPolicy(
    warmup_seconds=0.0, warmup_calls=1, repeats=20, min_repeat_seconds=0.0, max_seconds=1000.0
)


def comparison(**samples: tuple[float, ...]) -> Comparison:
    return Comparison({name: Timing(times, calls=len(times)) for name, times in samples.items()})


def test_steady_candidates() -> None:
    clock = FakeClock()
    result = time_interleaved({"slow": clock.taking(6 * MS), "fast": clock.taking(2 * MS)}, POLICY, clock)
    assert result.best == "fast"
    assert result.rounds == 20
    assert result.timings["slow"] == Timing((0.006,) * 20, calls=20)
    ratio = result.ratio("slow", "fast")
    assert (ratio.ratio, ratio.low, ratio.high) == pytest.approx((3.0, 3.0, 3.0))
    assert not result.ratio("slow", "fast").contains_one


def test_a_candidate_is_within_noise_of_itself() -> None:
    result = comparison(a=(1.0, 2.0, 3.0))
    assert result.ratio("a", "a").contains_one


def test_every_round_runs_every_candidate_once() -> None:
    clock = FakeClock()
    ran: list[str] = []

    def candidate(name: str) -> Callable[[], None]:
        def function() -> None:
            ran.append(name)
            clock.advance(MS)

        return function

    time_interleaved({name: candidate(name) for name in "abc"}, POLICY, clock)
    rounds = [ran[3 + 3 * i : 6 + 3 * i] for i in range(20)]  # the first three are the warm-up
    assert ran[:3] == ["a", "b", "c"]
    assert len(ran) == 63
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)


def test_orders_are_seeded() -> None:
    def first(seed: int) -> list[tuple[str, ...]]:
        return list(itertools.islice(round_orders(tuple("abcd"), seed), 10))

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_every_second_order_mirrors_the_one_before() -> None:
    orders = list(itertools.islice(round_orders(tuple("abc"), 0), 20))
    assert orders[1::2] == [order[::-1] for order in orders[::2]]


def test_every_candidate_follows_every_other() -> None:
    sequence = itertools.chain.from_iterable(itertools.islice(round_orders(tuple("abcd"), 0), 400))
    followers = Counter(pair for pair in itertools.pairwise(sequence) if pair[0] != pair[1])
    assert len(followers) == 12
    assert min(followers.values()) > 0.7 * max(followers.values())


def test_calls_are_grouped_per_candidate() -> None:
    clock = FakeClock()
    candidates = {"slow": clock.taking(50 * MS), "fast": clock.taking(MS)}
    result = time_interleaved(candidates, replace(POLICY, min_repeat_seconds=0.01), clock)
    assert result.timings["slow"].calls == 20
    assert result.timings["fast"].calls == 200
    assert result.ratio("slow", "fast").ratio == pytest.approx(50.0)


def test_the_budget_of_all_candidates_ends_the_rounds_before_it_is_exceeded() -> None:
    clock = FakeClock()
    candidates = {"a": clock.taking(100 * MS), "b": clock.taking(300 * MS)}
    result = time_interleaved(candidates, replace(POLICY, max_seconds=1.75), clock)
    assert result.rounds == 7  # 0.4 s each after a warm-up of 0.4 s: the next one would end at 3.6 s of 3.5 s
    assert clock() == 3200 * MS


def test_the_minimum_of_rounds_is_made_whatever_the_budget() -> None:
    clock = FakeClock()
    result = time_interleaved({"a": clock.taking(MS)}, replace(POLICY, max_seconds=0.0), clock)
    assert result.rounds == 6


def test_progress() -> None:
    clock = FakeClock()
    rounds: list[Round] = []
    candidates = {"a": clock.taking(100 * MS), "b": clock.taking(100 * MS)}
    time_interleaved(candidates, replace(POLICY, max_seconds=0.85), clock, rounds.append)
    assert [(progress.done, progress.most, progress.max_seconds) for progress in rounds] == [
        (done, 20, 1.7) for done in range(1, 8)
    ]
    assert [progress.seconds for progress in rounds] == pytest.approx([0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6])
    assert rounds[-1].fraction == pytest.approx(1.6 / 1.7)


def test_the_fraction_done_is_that_of_the_limit_that_comes_first() -> None:
    assert Round(5, 20, 1.0, 10.0).fraction == 0.25
    assert Round(5, 20, 9.0, 10.0).fraction == 0.9
    assert Round(5, 20, 90.0, 10.0).fraction == 1.0
    assert Round(5, 20, 90.0, 0.0).fraction == 1.0


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_what_a_candidate_raises_propagates(error: type[BaseException]) -> None:
    calls = itertools.count()

    def candidate() -> None:
        if next(calls) == 9:
            raise error

    clock = FakeClock()
    with pytest.raises(error):
        time_interleaved({"steady": clock.taking(MS), "failing": candidate}, POLICY, clock)


def test_no_candidates() -> None:
    with pytest.raises(ValueError, match=r"^there is no candidate to time$"):
        time_interleaved({}, POLICY, FakeClock())


def test_a_comparison_of_different_numbers_of_rounds() -> None:
    with pytest.raises(ValueError, match=r"equally many samples, found \[1, 2\]$"):
        comparison(a=(1.0,), b=(1.0, 2.0))


def test_the_first_of_equals_is_the_best() -> None:
    assert comparison(b=(1.0,), a=(1.0,)).best == "b"


def test_few_rounds_cannot_tell_candidates_apart() -> None:
    result = comparison(a=(9.0,) * 5, b=(1.0,) * 5)
    ratio = result.ratio("a", "b")
    assert (ratio.low, ratio.high) == (0.0, math.inf)
    assert result.ratio("a", "b").contains_one


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.9, 1.1, True), (1.0, 1.1, True), (1.01, 1.1, False), (0.9, 0.99, False)]
)
def test_an_interval_contains_one(low: float, high: float, expected: bool) -> None:
    assert RatioInterval((low + high) / 2, low, high).contains_one is expected


def test_drift_of_the_machine_cancels() -> None:
    """A machine that gets twice as slow meanwhile: the times vary by a factor of 2, their ratio by 3 %."""
    clock = FakeClock()

    def cost(base: int) -> Callable[[], int]:
        return lambda: int(base * (1 + min(1.0, clock() / (50 * base))))

    result = time_interleaved({"a": clock.taking(cost(MS)), "b": clock.taking(cost(MS))}, POLICY, clock)
    assert result.timings["a"].spread > 0.2
    ratio = result.ratio("a", "b")
    assert 0.97 < ratio.low <= 1.0 <= ratio.high < 1.03


def measured(true_ratio: float, seed: int) -> RatioInterval:
    """Two candidates under heavy-tailed noise (a Pareto tail without a variance) and a common slow wave."""
    clock = FakeClock()
    generator = random.Random(seed)

    def cost(base: float) -> Callable[[], int]:
        def draw() -> int:
            wave = 1 + 0.3 * math.sin(clock() / (37 * MS))
            return int(base * wave * generator.lognormvariate(0, 0.05) * generator.paretovariate(1.8))

        return draw

    candidates = {"a": clock.taking(cost(true_ratio * MS)), "b": clock.taking(cost(MS))}
    return time_interleaved(candidates, replace(POLICY, seed=seed), clock).ratio("a", "b")


@pytest.mark.parametrize("true_ratio", [1.0, 1.3])
def test_the_interval_covers_a_planted_ratio_as_often_as_it_says(true_ratio: float) -> None:
    """With 20 rounds the nominal coverage is 0.9586; 500 seeds give it to within 0.009 (one sigma)."""
    intervals = [measured(true_ratio, seed) for seed in range(500)]
    covered = sum(interval.low <= true_ratio <= interval.high for interval in intervals) / len(intervals)
    assert 0.93 <= covered <= 0.985
    misled = sum(i.low <= 2.5 * true_ratio <= i.high for i in intervals) / len(intervals)
    assert misled < 0.1


times = st.floats(1e-9, 1e3)


@settings(deadline=None)
@given(st.lists(st.tuples(times, times), min_size=1, max_size=40))
def test_swapping_the_candidates_inverts_the_interval(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs, strict=True)
    result = comparison(a=a, b=b)
    forth, back = result.ratio("a", "b"), result.ratio("b", "a")
    assert forth.low <= forth.ratio <= forth.high
    assert forth.ratio * back.ratio == pytest.approx(1.0)
    if len(pairs) >= 6:
        assert forth.low * back.high == pytest.approx(1.0)
        assert forth.high * back.low == pytest.approx(1.0)
    assert result.ratio("a", "b").contains_one == result.ratio("b", "a").contains_one


@settings(deadline=None)
@given(st.lists(times, min_size=6, max_size=40), st.floats(0.01, 100.0))
def test_a_constant_factor_is_found_exactly(samples: list[float], factor: float) -> None:
    result = comparison(a=tuple(factor * sample for sample in samples), b=tuple(samples))
    ratio = result.ratio("a", "b")
    assert (ratio.ratio, ratio.low, ratio.high) == pytest.approx((factor, factor, factor))
