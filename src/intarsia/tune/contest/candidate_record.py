"""Outcomes of the candidates for a whole model as plain records, which the command line and reports read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from intarsia.measure.judge.gate_report import InputSetError
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.timing.interleaved import RatioInterval
from intarsia.measure.timing.timing import Timing


class Status(StrEnum):
    """Outcome of a candidate."""

    MEASURED = "measured"
    UNAVAILABLE = "unavailable"
    """The toolchain is not usable on this machine."""
    UNSUPPORTED = "unsupported"
    """The toolchain does not support the model."""
    FAILED = "failed"
    """It compiled, but failed while loading or running."""
    WRONG = "wrong"
    """Its result differs from the reference: it cannot win."""
    CRASHED = "crashed"
    """Its process ended."""
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    SLOW = "slow"
    """It takes many times as long as the fastest candidate: not measured further."""
    NOT_MEASURED = "not measured"
    """The budget was used up before its turn."""


STATUS_OF: Final = {
    MeasureError.OK: Status.MEASURED,
    MeasureError.INSTANTIATION: Status.FAILED,
    MeasureError.COMPILE: Status.UNSUPPORTED,
    MeasureError.LOAD: Status.FAILED,
    MeasureError.RUNTIME: Status.FAILED,
    MeasureError.WRONG_ANSWER: Status.WRONG,
    MeasureError.BUILD_TIMEOUT: Status.TIMED_OUT,
    MeasureError.RUN_TIMEOUT: Status.TIMED_OUT,
    MeasureError.CRASH: Status.CRASHED,
    MeasureError.OUT_OF_MEMORY: Status.OUT_OF_MEMORY,
    MeasureError.UNKNOWN: Status.FAILED,
}
"""Status of a candidate by the outcome of its measurement."""


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """A candidate for the whole model.

    Attributes:
        name: Toolchain, and the options of the target if it has any.
        target: Text of the target.
        status: Outcome.
        reason: Reason why it was not measured or cannot win.
        measure_seconds: Seconds of building, checking and timing it; None if it was not measured.
        max_error: Largest difference from the reference relative to its largest value, if compared.
        timing: Latency in the race, or by itself if it did not race.
        ratio: Latency relative to the winner's in common rounds, with its interval.
        chosen: Whether it won.
        by_size: Sizes of the symbolic dimensions as text, with the median latency at them in the race; empty
            for a program without symbolic dimensions, and without a race.
        errors: Errors on each input set that it was checked on.
        is_whole: Whether one toolchain runs the whole model; otherwise the name contains the parts of each.
    """

    name: str
    target: str
    status: Status
    reason: str = ""
    measure_seconds: float | None = None
    max_error: float | None = None
    timing: Timing | None = None
    ratio: RatioInterval | None = None
    chosen: bool = False
    is_whole: bool = True
    by_size: tuple[tuple[str, float], ...] = ()
    errors: tuple[InputSetError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data: seconds, and errors relative to the largest expected value."""
        return {
            "toolchain": self.name.partition(" ")[0] if self.is_whole else self.name,
            "target": self.target,
            "is_whole": self.is_whole,
            "status": self.status.value,
            "reason": self.reason,
            "measure_seconds": self.measure_seconds,
            "latency_seconds": None if self.timing is None else self.timing.median,
            "latency_spread": None if self.timing is None else self.timing.spread,
            "ratio": None if self.ratio is None else self.ratio.ratio,
            "ratio_interval": None if self.ratio is None else [self.ratio.low, self.ratio.high],
            "max_error": self.max_error,
            "verified": None if self.max_error is None else self.status is not Status.WRONG,
            "chosen": self.chosen,
            "latency_seconds_by_size": dict(self.by_size),
        }
