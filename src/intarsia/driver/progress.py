"""Progress events of a tuning run, which the command line shows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from intarsia.autoschedule.tuning.schedule_records import ScheduleProgress
from intarsia.measure.measure_progress import MeasureProgress


class TuneStage(StrEnum):
    """Stages of a tuning run."""

    IMPORT = "import"
    REFERENCE = "reference"
    SCHEDULES = "schedules"
    TUNE = "tune"
    SEARCH = "search"
    MEASURE = "measure"
    RACE = "race"


@dataclass(frozen=True, slots=True)
class Progress:
    """A progress event.

    Attributes:
        stage: Current stage.
        fraction: Completed share of the stage, from 0 to 1.
        measured: Progress of the measurements, while measuring.
        scheduled: Progress of the schedule search, while searching schedules.
    """

    stage: TuneStage
    fraction: float = 0.0
    measured: MeasureProgress | None = None
    scheduled: ScheduleProgress | None = None
