"""Small records of measurements."""

from __future__ import annotations

from intarsia.measure.database import Measurement, MeasureRecord
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.measure_result import MeasureError, MeasureResult

TARGET = "cpu -toolchain=native"
HERE, THERE = "host-here", "host-there"


def candidate(trace: PlainData = "c") -> Candidate:
    """A candidate that is never carried out."""
    return Candidate("schedule", trace)


def worked(*costs: float, timestamp: float = 1000.0, max_error: float | None = None) -> Measurement:
    """A measurement that gave costs."""
    return Measurement(MeasureResult(costs, MeasureError.OK, "", 1.5, timestamp, max_error))


def failed(error: MeasureError = MeasureError.CRASH, timestamp: float = 1000.0) -> Measurement:
    """A measurement that gave none."""
    return Measurement(MeasureResult((), error, f"it ended as {error}", 0.5, timestamp))


def record(
    trace: PlainData,
    *measurements: Measurement,
    workload: str = "workload",
    target: str = TARGET,
    host: str = HERE,
) -> MeasureRecord:
    """A record of a candidate with that trace; a millisecond if no measurement is given."""
    text = candidate(trace).text
    return MeasureRecord(workload, target, host, "schedule", text, measurements or (worked(0.001),))
