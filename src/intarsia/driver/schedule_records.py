"""What a search for schedules has found, as plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from intarsia.measure.measure_result import MeasureError
from intarsia.target import Target


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """That schedules are searched, and how long.

    Attributes:
        seconds: Time of all searches for this model's kernels on this machine, also of those before.
        trials: Schedules that are measured, those of before counted; None for as many as there is time for.
    """

    seconds: float
    trials: int | None


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A kernel of a model, and how far the search of its schedule has come.

    Attributes:
        name: Of the kernel.
        weight: How many calls of the model's plan run it.
        trials: Schedules that were measured, in this run and before.
        failed: How many of those of this run failed, by kind.
        default_seconds: What a call takes with the default schedule, if measured.
        seconds: What it takes with the best one, if measured; compared with the default in turns if that is
            what the book has.
        flop_per_second: At `seconds`; None if the operations are not known.
        share_of_peak: `flop_per_second` over what multiply-adds in registers reach on as many threads.
        is_chosen: Whether the book has a schedule for it, which is faster than the default.
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

    def to_json(self) -> dict[str, Any]:
        """The row as plain data."""
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
        }


class BookedTargets(NamedTuple):
    """Who is measured.

    Attributes:
        targets: Those that were asked for, and native with a schedule book if there is one.
        rows: The kernels, if their schedules were searched.
    """

    targets: tuple[Target, ...]
    rows: tuple[ScheduleRow, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleProgress:
    """How far a search for schedules has come, after a round of one kernel.

    Attributes:
        row: That kernel.
        trials: Schedules of all kernels that were measured in this run.
        objective: Seconds that all kernels of a run of the model take, each with its best schedule; None
            while one of them has none that works.
        fraction: How much of what may be spent is spent, from 0 to 1.
    """

    row: ScheduleRow
    trials: int
    objective: float | None
    fraction: float
