"""Timing one function: warm-up, repeats of grouped calls, a median with its interval."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.measure.timing.cache_flush import cache_flush_of_this_machine
from intarsia.measure.timing.clock import MONOTONIC_CLOCK, Clock
from intarsia.measure.timing.median_interval import SMALLEST_SAMPLE, median_interval
from intarsia.support.errors import UsageError
from intarsia.support.garbage_collection import pause_garbage_collection

MAX_CALLS = 1_000_000
"""The most calls of one warm-up or repeat: a function that takes no time on the clock must end as well."""

WARMUP_SHARE = 0.25
"""The share of the time budget after which a warm-up ends even if it is not complete."""


@dataclass(frozen=True, slots=True)
class TimingPolicy:
    """How long and how often candidates are timed.

    Attributes:
        warmup_seconds: Each candidate runs untimed for at least this long,
        warmup_calls: and at least this often (once at least, to learn how many calls a repeat needs).
        repeats: Samples taken if the budget allows (rounds, when candidates are interleaved).
        min_repeats: Samples taken whatever the budget. With fewer than six there is no 95 % interval.
        min_repeat_seconds: A sample times as many calls in a row as last at least this long.
        max_seconds: Time budget for each candidate, with its warm-up.
        seed: Seed of the order in which interleaved candidates run.
        flush_cache: Whether the caches of the CPU are emptied before each sample, untimed. A sample is then a
            single call whatever `min_repeat_seconds`: a second one would find the caches filled by the first.

    Raises:
        UsageError: A number that makes no sense.
    """

    warmup_seconds: float = 0.1
    warmup_calls: int = 3
    repeats: int = 30
    min_repeats: int = SMALLEST_SAMPLE
    min_repeat_seconds: float = 0.01
    max_seconds: float = 10.0
    seed: int = 0
    flush_cache: bool = False

    def __post_init__(self) -> None:
        for field in ("warmup_seconds", "warmup_calls", "min_repeat_seconds", "max_seconds"):
            value = getattr(self, field)
            if not 0 <= value < math.inf:
                raise UsageError(
                    f"the timing policy has {field} = {value}, expected a finite number of at least 0"
                )
        if self.min_repeats < 1:
            raise UsageError(f"the timing policy has min_repeats = {self.min_repeats}, expected at least 1")
        if self.repeats < self.min_repeats:
            raise UsageError(
                f"the timing policy has repeats = {self.repeats}, "
                f"expected at least min_repeats = {self.min_repeats}"
            )


DEFAULT_POLICY = TimingPolicy()


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one call of a function takes.

    Attributes:
        samples: Seconds per call, one value per repeat, in the order they were taken.
        calls: Timed calls in all.

    Raises:
        ValueError: There is no sample.
    """

    samples: tuple[float, ...]
    calls: int

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a timing needs at least one sample")

    @property
    def median(self) -> float:
        """Seconds per call."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """Interquartile range divided by the median: 0 is perfectly steady."""
        if len(self.samples) == 1:
            return 0.0
        first, _, third = statistics.quantiles(self.samples, method="inclusive")
        return (third - first) / self.median

    @property
    def low(self) -> float:
        """Lower end of the 95 % confidence interval of the median, in seconds; 0 below six samples."""
        return max(0.0, median_interval(self.samples)[0])

    @property
    def high(self) -> float:
        """Upper end of the 95 % confidence interval of the median, in seconds; infinite below six samples."""
        return median_interval(self.samples)[1]


@dataclass(frozen=True, slots=True)
class Sample:
    """One repeat: `calls` calls in a row took `seconds` per call."""

    seconds: float
    calls: int


def timing_of(samples: list[Sample]) -> Timing:
    """The samples of one function together."""
    return Timing(tuple(sample.seconds for sample in samples), sum(sample.calls for sample in samples))


def time_function(
    function: Callable[[], object], policy: TimingPolicy = DEFAULT_POLICY, clock: Clock = MONOTONIC_CLOCK
) -> Timing:
    """Time a function by itself; what the function raises propagates.

    To compare several, use `time_interleaved`: a machine drifts between two calls of this.
    """
    start = clock()
    calls = warm_up(function, policy, clock)
    return timing_of(take_samples(function, calls, policy, clock, start))


def warm_up(function: Callable[[], object], policy: TimingPolicy, clock: Clock) -> int:
    """Run a function untimed until it is warm.

    Returns:
        How many calls last about `policy.min_repeat_seconds`, judged by the later half of the warm-up.
    """
    durations: list[int] = []
    start = now = clock()
    while not durations or not _is_warm(policy, len(durations), (now - start) * 1e-9):
        function()
        before, now = now, clock()
        durations.append(now - before)
    typical = max(1.0, statistics.median(durations[len(durations) // 2 :]))
    return min(MAX_CALLS, max(1, math.ceil(policy.min_repeat_seconds * 1e9 / typical)))


def _is_warm(policy: TimingPolicy, calls: int, seconds: float) -> bool:
    if calls >= MAX_CALLS or seconds >= policy.max_seconds * WARMUP_SHARE:
        return True
    return calls >= policy.warmup_calls and seconds >= policy.warmup_seconds


def take_samples(
    function: Callable[[], object],
    calls: int,
    policy: TimingPolicy,
    clock: Clock,
    start: int,
    first: Sequence[Sample] = (),
) -> list[Sample]:
    """Take samples until there are `policy.repeats`, or the time is used up.

    Args:
        function: Function to time.
        calls: Calls in a row (see `take_sample`).
        policy: Limits of the timing.
        clock: Function that returns the time in nanoseconds.
        start: Time from which `policy.max_seconds` count.
        first: Samples that were taken before, and count.
    """
    samples = list(first)
    while len(samples) < policy.repeats:
        before = clock()
        samples.append(take_sample(function, calls, policy, clock))
        now = clock()
        if len(samples) >= policy.min_repeats and (now - start) + (now - before) > policy.max_seconds * 1e9:
            break  # another sample like this one would exceed the budget
    return samples


def take_sample(
    function: Callable[[], object],
    calls: int,
    policy: TimingPolicy,
    clock: Clock,
    flush: Callable[[], object] | None = None,
) -> Sample:
    """Time groups of `calls` calls until `policy.min_repeat_seconds` have passed; one group, as a rule.

    With `policy.flush_cache`, call `flush` (this machine's, unless given) first, and time one call.
    """
    shortest = policy.min_repeat_seconds * 1e9
    done, elapsed = 0, 0
    if policy.flush_cache:
        calls, shortest = 1, 0.0
        (flush or cache_flush_of_this_machine())()
    with pause_garbage_collection():
        start = clock()
        while done == 0 or (elapsed < shortest and done < MAX_CALLS):
            for _ in itertools.repeat(None, calls):
                function()
            done += calls
            elapsed = clock() - start
    return Sample(max(1, elapsed) * 1e-9 / done, done)  # at least one tick: ratios of times must exist
