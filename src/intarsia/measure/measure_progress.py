"""The progress of a series of measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from intarsia.measure.measure_result import MeasureError


@dataclass(frozen=True, slots=True)
class MeasureProgress:
    """The progress of a series of measurements.

    Attributes:
        done: Number of candidates with a result.
        stored: Number of results from the database.
        total: Number of all candidates.
        failed: Number of failures by kind.
        best: The least cost so far in seconds, or infinite.
        seconds: Time used.
        seconds_left: Time that the rest will take at this pace, or until the budget ends, in seconds.
    """

    done: int
    stored: int
    total: int
    failed: Mapping[MeasureError, int]
    best: float
    seconds: float
    seconds_left: float
