"""A meter of a budget that counts what a test sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PlannedMeter:
    """Counts seconds and trials that a test sets.

    Attributes:
        spent: Seconds up to the last measurement.
        trials: Number of measurements.
        planning: Seconds since the last measurement.
    """

    spent: float = 0.0
    trials: int = 0
    planning: float = 0.0

    @property
    def elapsed(self) -> float:
        """See Meter.elapsed."""
        return self.spent + self.planning

    @property
    def measuring_seconds(self) -> float:
        """See Meter.measuring_seconds."""
        return self.spent

    @property
    def candidates(self) -> int:
        """See Meter.candidates."""
        return self.trials
