"""How schedules are measured: how long, how often, and what they may take."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from intarsia.measure.timing.timing import TimingPolicy
from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class RunTiming:
    """How a schedule is timed by itself: a few milliseconds, less if it is hopeless.

    Attributes:
        repeats: Samples taken if the time allows.
        min_repeats: Samples taken whatever the time, unless it is hopeless.
        sample_seconds: A sample times as many calls in a row as last at least this long.
        max_seconds: Time for all samples.
        clear_ratio: A schedule whose long calls take so many times as long as the best known one is clearly
            slower: it is timed no more.
        hopeless_ratio: A schedule that takes so many times as long as the best known one is timed no more.
        flush_cache: Whether the caches are emptied before each sample, which is a single call then.
        operand_bytes: Calls take turns on copies of the operands of at least so many bytes together, so that
            caches of that size hold them no better than within a model; 0 for one copy.

    Raises:
        UsageError: A number that makes no sense.
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
        """The samples as a policy; a schedule needs no warm-up, as it was called to check its result."""
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
"""How the best schedules are timed once more, in turns."""


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How schedules are measured.

    Attributes:
        timing: How each is timed by itself.
        retiming: How the best are timed once more, in turns; the budget is of each.
        build_seconds: Time that a build may take.
        run_seconds: Time that a run may take, with the check of its result.
        reference_seconds: Time that the reference result of a task may take.
        memory_bytes: Memory that a build or a run may add, or None.
        most_stores: Loops that come to more stores are refused (see `compile_schedule`), or None. 1024 are
            about as much code as a first-level cache holds, and take LLVM a third of a second.
        batch: So many are built before they are run, so that no build disturbs a run.
        seed: Of random inputs.

    Raises:
        UsageError: A number that makes no sense.
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
