"""What measuring a schedule has given; a failure is a value like any other."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from intarsia.measure.measure_result import MeasureError


@dataclass(frozen=True, slots=True)
class ScheduleMeasurement:
    """The measurement of one schedule.

    Attributes:
        costs: Seconds of a call, one number a repetition; () of a failure.
        error: How it ended.
        message: What went wrong, for people; "" if nothing.
        build_seconds: Time that building took.
        run_seconds: Time that running took, with the check of the result.
        timestamp: When it was finished, in seconds since 1970 (UTC).
        is_confirmed: Whether it is that of the best finalist of a confirmation.
    """

    costs: tuple[float, ...]
    error: MeasureError
    message: str = ""
    build_seconds: float = 0.0
    run_seconds: float = 0.0
    timestamp: float = 0.0
    is_confirmed: bool = False

    @property
    def is_ok(self) -> bool:
        """Whether there is a cost."""
        return self.error is MeasureError.OK and bool(self.costs)

    @property
    def cost(self) -> float:
        """The median of the costs in seconds; infinite for a failure."""
        return statistics.median(self.costs) if self.is_ok else math.inf
