"""How long and how often one schedule is timed."""

from math import inf

import pytest
from tests.fake_clock import FakeClock

from intarsia.measure.schedules.kernel_timing import KernelTiming
from intarsia.measure.schedules.run_timing import time_run
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.support.errors import UsageError

MS = 1_000_000
TIMING = KernelTiming(
    TimingPolicy(repeats=8, min_repeats=3, min_repeat_seconds=0.001, max_seconds=0.01), hopeless_ratio=3.0
)


def timed(
    cost: int, first: float, best: float = inf, timing: KernelTiming = TIMING
) -> tuple[tuple[float, ...], int]:
    """What a function of constant cost in nanoseconds gives, and how often it was called."""
    clock, calls = FakeClock(), 0
    taking = clock.taking(cost)

    def function() -> None:
        nonlocal calls
        calls += 1
        taking()

    return time_run(function, first, best, timing, clock), calls


def test_short_calls_are_grouped_into_samples() -> None:
    costs, calls = timed(MS // 100, first=1e-5)
    assert costs == pytest.approx([1e-5] * 8)
    assert calls == 1 + 8 * 100


def test_the_first_warm_call_is_a_sample_where_it_lasts_as_long_as_one() -> None:
    costs, calls = timed(2 * MS, first=0.004)
    assert costs == pytest.approx([0.002] * 5)
    assert calls == 5


def test_long_calls_are_repeated_as_often_as_is_asked_for_at_least() -> None:
    costs, calls = timed(20 * MS, first=0.02)
    assert costs == pytest.approx([0.02] * 3)
    assert calls == 3


def test_what_is_hopeless_is_called_once_more() -> None:
    costs, calls = timed(2 * MS, first=0.002, best=0.0005)
    assert costs == pytest.approx([0.002])
    assert calls == 1


def test_what_is_hopeless_at_the_first_call_is_not_called_again() -> None:
    costs, calls = timed(2 * MS, first=0.1, best=0.005)
    assert (costs, calls) == ((0.1,), 0)


def test_long_calls_that_are_clearly_slower_are_called_twice() -> None:
    costs, calls = timed(32 * MS, first=0.032, best=0.02)
    assert list(costs) == pytest.approx([0.032])
    assert calls == 1
    costs, _ = timed(28 * MS, first=0.028, best=0.02)
    assert len(costs) == 3


def test_one_call_that_was_disturbed_does_not_decide() -> None:
    costs, _ = timed(2 * MS, first=0.001, best=0.0005)
    assert costs == pytest.approx([0.002] * 5)


def test_a_short_first_call_proves_nothing() -> None:
    costs, _ = timed(MS, first=0.009, best=0.0009)
    assert costs == pytest.approx([0.001] * 8)


def test_with_emptied_caches_each_sample_is_one_call() -> None:
    policy = TimingPolicy(
        repeats=4, min_repeats=2, min_repeat_seconds=0.5, max_seconds=0.01, flush_cache=True
    )
    timing = KernelTiming(policy)
    costs, calls = timed(MS, first=0.001, timing=timing)
    assert costs == pytest.approx([0.001] * 4)
    assert calls == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operand_bytes": -1}, "operand_bytes is -1; expected at least 0"),
        ({"clear_ratio": 0.5}, "clear_ratio is 0.5; expected a number above 1"),
        ({"hopeless_ratio": 1.0}, "hopeless_ratio is 1.0; expected a number above 1"),
    ],
    ids=["operand_bytes", "clear_ratio", "hopeless_ratio"],
)
def test_numbers_that_make_no_sense_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        KernelTiming(**changes)  # type: ignore[arg-type]  # numbers of either kind
    assert str(caught.value) == message
