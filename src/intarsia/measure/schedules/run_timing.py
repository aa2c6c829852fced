"""Time a schedule within a few milliseconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from intarsia.measure.schedules.kernel_timing import KernelTiming
from intarsia.measure.timing.clock import MONOTONIC_CLOCK, Clock
from intarsia.measure.timing.timing import MAX_CALLS, TimingPolicy, take_sample, take_samples

_COLD_RATIO: Final = 1.5
"""Limit of the ratio of a first call to later ones, for calls of `_LONG_SECONDS` or more."""
_LONG_SECONDS: Final = 0.01


def time_run(
    function: Callable[[], object],
    first_seconds: float,
    best_seconds: float,
    timing: KernelTiming,
    clock: Clock = MONOTONIC_CLOCK,
) -> tuple[float, ...]:
    """Return the seconds of a call, a number for each sample; a single number for a hopelessly slow schedule.

    Args:
        function: Function that runs the schedule; it has been called once.
        first_seconds: Seconds of that first call.
        best_seconds: Seconds of the best schedule so far; inf if there is none.
        timing: Durations and sample counts.
        clock: Clock in seconds.
    """
    limit = timing.hopeless_ratio * best_seconds
    if min(first_seconds, best_seconds) > timing.policy.max_seconds:
        # One call is longer than all samples of a short kernel: two of them show which schedule is slower.
        limit = timing.clear_ratio * best_seconds
    if first_seconds > max(_COLD_RATIO * limit, _LONG_SECONDS):
        return (first_seconds,)
    start = clock()
    typical = take_sample(function, 1, TimingPolicy(min_repeat_seconds=0.0), clock)
    if min(first_seconds, typical.seconds) > limit:  # twice, so that no disturbance of one call decides
        return (min(first_seconds, typical.seconds),)
    is_long = typical.seconds >= timing.policy.min_repeat_seconds and not timing.policy.flush_cache
    calls = min(MAX_CALLS, max(1, math.ceil(timing.policy.min_repeat_seconds / typical.seconds)))
    samples = take_samples(function, calls, timing.policy, clock, start, [typical] if is_long else ())
    return tuple(sample.seconds for sample in samples)
