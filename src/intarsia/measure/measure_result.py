"""The result of measuring a candidate; a failure is a value like any other."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from enum import StrEnum

from intarsia.measure.judge.gate_report import InputSetError


class MeasureError(StrEnum):
    """How measuring a candidate ended (DESIGN section 11: failures are values)."""

    OK = "ok"
    INSTANTIATION = "instantiation"
    COMPILE = "compile"
    LOAD = "load"
    RUNTIME = "runtime"
    WRONG_ANSWER = "wrong answer"
    BUILD_TIMEOUT = "build timeout"
    RUN_TIMEOUT = "run timeout"
    CRASH = "crash"
    OUT_OF_MEMORY = "out of memory"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """The result of one candidate.

    Attributes:
        costs: Seconds of one run, a number a repetition; empty unless the error is OK.
        error: OK, or the kind of failure.
        message: Message of the failure; "" for OK.
        wall_seconds: Time that building and running took in all.
        timestamp: End of the measurement, in seconds since 1970 (UTC).
        max_error: Largest difference from the reference result, relative to its largest value; None if it was
            not compared. That of NaN counts as infinite.
        charged_seconds: Seconds of the run that it counts for in budgets, with what went before it; None if
            those are `wall_seconds`.
        errors: Errors on each input set that it was checked on; not compared, as they change no decision.
        is_confirmed: Whether it is the best of the candidates that a search has timed interleaved at its end;
            databases do not store it.
    """

    costs: tuple[float, ...]
    error: MeasureError
    message: str = ""
    wall_seconds: float = 0.0
    timestamp: float = 0.0
    max_error: float | None = None
    charged_seconds: float | None = None
    errors: tuple[InputSetError, ...] = field(default=(), compare=False)
    is_confirmed: bool = False

    @property
    def is_ok(self) -> bool:
        """Whether there is a cost."""
        return self.error is MeasureError.OK

    @property
    def cost(self) -> float:
        """The median of the costs in seconds; infinite for a failure."""
        return statistics.median(self.costs) if self.is_ok and self.costs else math.inf
