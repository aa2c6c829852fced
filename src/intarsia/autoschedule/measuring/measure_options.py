"""Options of measuring schedules: durations, sample counts and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from intarsia.measure.timing.timing import TimingPolicy
from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Timing of a single schedule: a few milliseconds, less if it is hopelessly slow.

    Attributes:
        repeats: Number of samples if the time allows.
        min_repeats: Least number of samples, unless the schedule is hopelessly slow.
        sample_seconds: Least duration of a sample in seconds; it times as many calls in a row as that takes.
        max_seconds: Seconds for all samples.
        clear_ratio: Ratio to the time of the best schedule above which a schedule with long calls is clearly
            slower, and is timed no more.
        hopeless_ratio: Ratio to the time of the best schedule above which any schedule is timed no more.
        flush_cache: Whether the caches are emptied before each sample, which is a single call then.
        operand_bytes: Least number of bytes of the copies of the operands that calls cycle through, so that
            caches of that size hold them no better than within a model; 0 for no copies.

    Raises:
        UsageError: A number is out of range.
    """

    repeats: int = 8
    min_repeats: int = 3
    sample_seconds: float = 0.001
    max_seconds: float = 0.01
    clear_ratio: float = 1.5
    hopeless_ratio: float = 2.5
    flush_cache: bool = False
    operand_bytes: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.min_repeats <= self.repeats:
            found = f"repeats = {self.repeats} and min_repeats = {self.min_repeats}"
            raise UsageError(f"{found}; expected 1 <= min_repeats <= repeats")
        for name in ("sample_seconds", "max_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UsageError(f"{name} is {getattr(self, name)}; expected a finite number of at least 0")
        if self.operand_bytes < 0:
            raise UsageError(f"operand_bytes is {self.operand_bytes}; expected at least 0")
        for name in ("clear_ratio", "hopeless_ratio"):
            if not getattr(self, name) > 1:
                raise UsageError(f"{name} is {getattr(self, name)}; expected a number above 1")

    @property
    def policy(self) -> TimingPolicy:
        """Timing policy of the samples; the check of the result was the warm-up."""
        return TimingPolicy(
            warmup_seconds=0.0,
            warmup_calls=1,
            repeats=self.repeats,
            min_repeats=self.min_repeats,
            min_repeat_seconds=self.sample_seconds,
            max_seconds=self.max_seconds,
            flush_cache=self.flush_cache,
        )


RETIMING: Final = TimingPolicy(
    warmup_seconds=0.01, warmup_calls=2, repeats=21, min_repeats=7, min_repeat_seconds=0.004, max_seconds=0.3
)
"""Timing policy of the interleaved measurement of the best schedules."""


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Options of measuring schedules.

    Attributes:
        timing: Timing of a single schedule.
        retiming: Timing policy of the interleaved measurement of the best schedules; its time is for each.
        build_seconds: Limit of the seconds of a build.
        run_seconds: Limit of the seconds of a run, with the check of its result.
        reference_seconds: Limit of the seconds of a task's reference result.
        memory_bytes: Limit of the bytes that a build or a run may allocate, or None.
        most_stores: Limit of the stores of unrolled loops (see `compile_schedule`), or None. 1024 are about
            as much code as a first-level cache holds, and take LLVM a third of a second.
        batch: Number of schedules that are built before they are run, so that no build disturbs a run.
        seed: Seed of random inputs.

    Raises:
        UsageError: A number is out of range.
    """

    timing: RunTiming = field(default_factory=RunTiming)
    retiming: TimingPolicy = RETIMING
    build_seconds: float = 15.0
    run_seconds: float = 10.0
    reference_seconds: float = 300.0
    memory_bytes: int | None = None
    most_stores: int | None = 1024
    batch: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("build_seconds", "run_seconds", "reference_seconds", "batch"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is {getattr(self, name)}; expected a number above 0")
