"""What became of a backend test in one column of the table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Column(StrEnum):
    """What a case is run through."""

    ONNX = "onnx"
    """onnx's own evaluator on the model as it is: the measure for the others."""
    ROUND_TRIP = "round trip"
    """Import, print, parse, export, check; the export in onnx's evaluator."""
    REFERENCE = "reference"
    NATIVE = "native"
    ONNXRUNTIME = "onnxruntime"
    OPENVINO = "openvino"
    AUTO = "auto"
    """`IntarsiaBackend`: the fastest toolchain that is right."""


class Outcome(StrEnum):
    """What became of a case."""

    PASSED = "passed"
    UNSUPPORTED = "unsupported"
    """Refused with a reason, by the import or by the toolchain."""
    WRONG = "wrong"
    FAILED = "failed"
    """An error while running; with a traceback, if it is none that we mean to raise."""
    CRASHED = "crashed"
    """The process died."""
    HUNG = "hung"
    """It took longer than it may."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a case in a column.

    Attributes:
        case: Name of the backend test.
        column: Column that the case was run in.
        outcome: Kind of the outcome.
        reason: Why it did not pass.
        traceback: Traceback of an exception that should not have escaped, else empty.
    """

    case: str
    column: Column
    outcome: Outcome
    reason: str = ""
    traceback: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Verdict:
        """The verdict that `to_json` gave this data for."""
        return cls(**{**data, "column": Column(data["column"]), "outcome": Outcome(data["outcome"])})
