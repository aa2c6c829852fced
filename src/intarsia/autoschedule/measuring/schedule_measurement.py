"""The result of measuring a schedule; a failure is a value too."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from intarsia.measure.measure_result import MeasureError


@dataclass(frozen=True, slots=True)
class ScheduleMeasurement:
    """The measurement of one schedule.

    Attributes:
        costs: Seconds of a call, a number for each sample; () after a failure.
        error: OK, or the kind of failure.
        message: Description of the failure for people; "" without a failure.
        build_seconds: Seconds that the build took.
        run_seconds: Seconds that the run took, with the check of the result.
        timestamp: End of the measurement in seconds since 1970 (UTC).
        is_confirmed: Whether the schedule is the best finalist of a confirmation.
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
