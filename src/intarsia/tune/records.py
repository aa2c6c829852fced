"""What a tuning run found, as plain records: the command line and the reports read these, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from intarsia.measure.compare_outputs import GateReport
from intarsia.measure.interleaved import RatioInterval
from intarsia.measure.timing import Timing


class Status(StrEnum):
    """What became of a candidate."""

    MEASURED = "measured"
    UNAVAILABLE = "unavailable"
    """The toolchain is not usable on this machine."""
    UNSUPPORTED = "unsupported"
    """The toolchain refuses the model."""
    FAILED = "failed"
    """It compiled, and failed while running."""
    WRONG = "wrong"
    """Its result differs from the reference: it can not win."""
    SLOW = "slow"
    """A first call took many times as long as the fastest candidate's: not measured further."""


class Stage(StrEnum):
    """What a tuning run is doing."""

    IMPORT = "import"
    COMPILE = "compile"
    REFERENCE = "reference"
    VERIFY = "verify"
    MEASURE = "measure"


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of progress.

    Attributes:
        stage: What is being done.
        candidate: Which candidate it is about, or the empty string.
        fraction: How much of the stage is done, from 0 to 1.
    """

    stage: Stage
    candidate: str = ""
    fraction: float = 0.0


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """One candidate: a toolchain for the whole model.

    Attributes:
        name: The toolchain, and the options of its target if it has any.
        target: Text of its target.
        status: What became of it.
        reason: Why, where it was not measured or cannot win.
        compile_seconds: Time to compile, None if it did not get there.
        gate: How it compares with the reference, None if it did not get there.
        timing: Its latency in the interleaved comparison.
        ratio: Its latency over that of the fastest measured candidate, with interval.
        chosen: Whether it won.
    """

    name: str
    target: str
    status: Status
    reason: str = ""
    compile_seconds: float | None = None
    gate: GateReport | None = None
    timing: Timing | None = None
    ratio: RatioInterval | None = None
    chosen: bool = False

    def to_json(self) -> dict[str, Any]:
        """The record as plain data; seconds, and errors relative to the largest expected value."""
        return {
            "toolchain": self.name.partition(" ")[0],
            "target": self.target,
            "status": self.status.value,
            "reason": self.reason,
            "compile_seconds": self.compile_seconds,
            "latency_seconds": None if self.timing is None else self.timing.median,
            "latency_spread": None if self.timing is None else self.timing.spread,
            "ratio": None if self.ratio is None else self.ratio.ratio,
            "ratio_interval": None if self.ratio is None else [self.ratio.low, self.ratio.high],
            "max_error": None if self.gate is None else self.gate.max_rel_error,
            "verified": None if self.gate is None else self.gate.passed,
            "chosen": self.chosen,
        }
