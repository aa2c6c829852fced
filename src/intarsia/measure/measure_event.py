"""A measurement that a run used, for reports."""

from __future__ import annotations

from dataclasses import dataclass

RACE: str = "race"
"""Kind of the event of an interleaved race."""


@dataclass(frozen=True, slots=True)
class MeasureEvent:
    """A measurement that a run used, new or stored.

    Attributes:
        at: Seconds of measuring of the run up to the end of this measurement; a stored one counts with its
            original time.
        seconds: Seconds of this measurement.
        workload: Digest of the measured program.
        target: Text of the target.
        kind: Kind of the candidate, or `RACE`.
        cost: Latency in seconds, or infinite.
        error: Outcome in words, a value of `MeasureError`.
    """

    at: float
    seconds: float
    workload: str
    target: str
    kind: str
    cost: float
    error: str
