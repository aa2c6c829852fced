"""Results of schedule searches as plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from intarsia.measure.measure_result import MeasureError


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """Progress of the schedule search of a kernel.

    Attributes:
        name: Name of the kernel.
        weight: Number of calls of the kernel in the model's plan.
        trials: Number of measured schedules, in this run and before.
        failed: Number of failures of this run, by kind.
        default_seconds: Seconds per call with the default schedule, if measured.
        seconds: Seconds per call with the best schedule, if measured; measured interleaved with the default
            if it is in the schedule log.
        flop_per_second: FLOP/s at `seconds`; None if the operations are unknown.
        share_of_peak: `flop_per_second` relative to the measured peak of FMAs in registers on as many
            threads.
        is_chosen: Whether the schedule log has a schedule for it, which is faster than the default.
        reason: Why the kernel is not searched; "" if it is.
    """

    name: str
    weight: int
    trials: int
    failed: Mapping[MeasureError, int]
    default_seconds: float | None
    seconds: float | None
    flop_per_second: float | None
    share_of_peak: float | None
    is_chosen: bool
    reason: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the row that `to_json` wrote.

        Raises:
            KeyError, ValueError, AttributeError: The data is damaged, or of another version.
        """
        return cls(
            name=data["name"],
            weight=data["weight"],
            trials=data["trials"],
            failed={MeasureError(kind): count for kind, count in data["failed"].items()},
            default_seconds=data["default_seconds"],
            seconds=data["seconds"],
            flop_per_second=data["flop_per_second"],
            share_of_peak=data["share_of_peak"],
            is_chosen=data["chosen"],
            reason=data["reason"],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {
            "name": self.name,
            "weight": self.weight,
            "trials": self.trials,
            "failed": {kind.value: count for kind, count in self.failed.items()},
            "default_seconds": self.default_seconds,
            "seconds": self.seconds,
            "flop_per_second": self.flop_per_second,
            "share_of_peak": self.share_of_peak,
            "chosen": self.is_chosen,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class ScheduleRows:
    """Kernels of a schedule search, as a note of the tuning tree.

    Attributes:
        rows: Rows of the kernels.
    """

    rows: tuple[ScheduleRow, ...]


@dataclass(frozen=True, slots=True)
class ScheduleSearchStart:
    """The start of a schedule search, which first times kernels with their default schedules."""


@dataclass(frozen=True, slots=True)
class ScheduleProgress:
    """Progress of a schedule search after a round of one kernel.

    Attributes:
        row: Kernel of the round.
        trials: Number of schedules of all kernels that were measured in this run.
        objective: Seconds of all kernels in a run of the model, each with its best schedule; None
            while a kernel has no working schedule.
        fraction: Used share of the budget, from 0 to 1.
    """

    row: ScheduleRow
    trials: int
    objective: float | None
    fraction: float
