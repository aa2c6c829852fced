"""Compare several functions by interleaved timing, so that the drift of the machine cancels."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from intarsia.measure.timing.clock import MONOTONIC_CLOCK, Clock
from intarsia.measure.timing.median_interval import median_interval
from intarsia.measure.timing.timing import (
    DEFAULT_POLICY,
    Sample,
    Timing,
    TimingPolicy,
    take_sample,
    timing_of,
    warm_up,
)


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """A ratio of two times with its 95 % confidence interval, `low <= ratio <= high`."""

    ratio: float
    low: float
    high: float

    @property
    def contains_one(self) -> bool:
        """Whether the two times do not differ significantly."""
        return self.low <= 1.0 <= self.high


@dataclass(frozen=True, slots=True)
class Round:
    """Progress of an interleaved comparison: one round has just been completed.

    Attributes:
        done: Rounds completed.
        most: Rounds that will be made if the budget allows.
        seconds: Time used so far, with warm-up.
        max_seconds: Time budget.
    """

    done: int
    most: int
    seconds: float
    max_seconds: float

    @property
    def fraction(self) -> float:
        """How much is done, from 0 to 1: by rounds or by budget, whichever is nearer its end."""
        by_budget = self.seconds / self.max_seconds if self.max_seconds else 1.0
        return min(1.0, max(self.done / self.most, by_budget))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Times of several candidates, taken in the same rounds.

    Attributes:
        timings: Timings by candidate; the samples with the same index come from the same round.

    Raises:
        ValueError: There is no candidate, or the candidates have different numbers of samples.
    """

    timings: Mapping[str, Timing]

    def __post_init__(self) -> None:
        rounds = {len(timing.samples) for timing in self.timings.values()}
        if len(rounds) != 1:
            raise ValueError(
                f"a comparison needs candidates with equally many samples, found {sorted(rounds)}"
            )

    @property
    def rounds(self) -> int:
        """Samples of each candidate."""
        return len(self.timings[self.best].samples)

    @property
    def best(self) -> str:
        """The candidate with the lowest median time; the first one of several that share it."""
        return min(self.timings, key=lambda name: self.timings[name].median)

    def ratio(self, name: str, other: str) -> RatioInterval:
        """How many times as long `name` takes as `other` (see `paired_ratio`)."""
        return paired_ratio(self.timings[name].samples, self.timings[other].samples)


def paired_ratio(samples: Sequence[float], others: Sequence[float]) -> RatioInterval:
    """How many times as long one candidate takes as another: the median of the ratios within each round.

    Its interval is made of order statistics (see `median_interval`) and not by a bootstrap: it holds its
    level with six rounds as with a hundred, whatever the noise, needs no random numbers, and the ratio the
    other way round is the reciprocal. With fewer than six rounds it is 0 to infinity.

    Args:
        samples: Seconds of the one, a number a round.
        others: Seconds of the other; rounds that only one of them has run do not count.

    Raises:
        ValueError: There is no common round.
    """
    pairs = zip(samples, others, strict=False)
    logarithms = [math.log(time) - math.log(other_time) for time, other_time in pairs]
    if not logarithms:
        raise ValueError("the two candidates have no round in common")
    low, high = median_interval(logarithms)
    return RatioInterval(math.exp(statistics.median(logarithms)), math.exp(low), math.exp(high))


def time_interleaved(
    candidates: Mapping[str, Callable[[], object]],
    policy: TimingPolicy = DEFAULT_POLICY,
    clock: Clock = MONOTONIC_CLOCK,
    on_round: Callable[[Round], object] | None = None,
) -> Comparison:
    """Time all candidates in rounds: each runs once per round, grouped to `policy.min_repeat_seconds`.

    Stops after `policy.repeats` rounds, or before the round that would exceed `policy.max_seconds` per
    candidate, but never before `policy.min_repeats` rounds. What a candidate or `on_round` raises propagates.

    Args:
        candidates: Functions to time, by name.
        policy: Limits of the timing.
        clock: Function that returns the time in nanoseconds.
        on_round: Called after each round.

    Raises:
        ValueError: There is no candidate.
    """
    if not candidates:
        raise ValueError("there is no candidate to time")
    budget = policy.max_seconds * len(candidates)
    start = clock()
    calls = {name: warm_up(function, policy, clock) for name, function in candidates.items()}
    samples: dict[str, list[Sample]] = {name: [] for name in candidates}
    orders = round_orders(tuple(candidates), policy.seed)
    for done in range(1, policy.repeats + 1):
        before = clock()
        for name in next(orders):
            samples[name].append(take_sample(candidates[name], calls[name], policy, clock))
        now = clock()
        if on_round is not None:
            on_round(Round(done, policy.repeats, (now - start) * 1e-9, budget))
        if done >= policy.min_repeats and (now - start) + (now - before) > budget * 1e9:
            break  # another round like this one would exceed the budget
    return Comparison({name: timing_of(taken) for name, taken in samples.items()})


def round_orders(names: tuple[str, ...], seed: int) -> Iterator[tuple[str, ...]]:
    """Endless orders of the candidates: a random one, then its mirror image, then another random one.

    Random orders give every candidate every neighbour; the mirror image gives both candidates of each pair
    the earlier place equally often, so that a drift within a round cancels too.
    """
    generator = random.Random(seed)  # noqa: S311 - an order of measurements is no secret
    while True:
        order = tuple(generator.sample(names, len(names)))
        yield order
        yield order[::-1]
