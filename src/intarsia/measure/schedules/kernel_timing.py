"""How a schedule is timed: within a few milliseconds, and less if it is hopelessly slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.measure.timing.timing import TimingPolicy
from intarsia.support.errors import UsageError

_SHORT: Final = TimingPolicy(
    warmup_seconds=0.0, warmup_calls=1, repeats=8, min_repeats=3, min_repeat_seconds=0.001, max_seconds=0.01
)
"""The check of the result is the warm-up."""


@dataclass(frozen=True, slots=True)
class KernelTiming:
    """Timing of a single schedule.

    Attributes:
        policy: Durations and sample counts, unless the schedule is hopelessly slow.
        clear_ratio: Ratio to the time of the best schedule above which a schedule with long calls is clearly
            slower, and is timed no more.
        hopeless_ratio: Ratio to the time of the best schedule above which any schedule is timed no more.
        operand_bytes: Least number of bytes of the copies of the operands that calls cycle through, so that
            caches of that size hold them no better than within a model; 0 for no copies.

    Raises:
        UsageError: A number is out of range.
    """

    policy: TimingPolicy = _SHORT
    clear_ratio: float = 1.5
    hopeless_ratio: float = 2.5
    operand_bytes: int = 0

    def __post_init__(self) -> None:
        if self.operand_bytes < 0:
            raise UsageError(f"operand_bytes is {self.operand_bytes}; expected at least 0")
        for name in ("clear_ratio", "hopeless_ratio"):
            if not getattr(self, name) > 1:
                raise UsageError(f"{name} is {getattr(self, name)}; expected a number above 1")


DEFAULT_TIMING: Final = KernelTiming()
