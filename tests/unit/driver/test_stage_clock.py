"""Seconds of the stages of a run, by a planned clock."""

from __future__ import annotations

from intarsia.driver.progress import Progress, TuneStage
from intarsia.driver.stage_clock import StageClock
from intarsia.report.run_records import StageSeconds


def test_time_counts_for_the_stage_of_the_event_before() -> None:
    times = iter([10.0, 11.0, 14.0, 14.5, 20.0, 21.0])
    events: list[Progress] = []
    clock = StageClock(events.append, lambda: next(times))
    stages = (TuneStage.IMPORT, TuneStage.MEASURE, TuneStage.RACE, TuneStage.MEASURE)
    for stage in stages:
        clock(Progress(stage))
    assert clock.records() == (
        StageSeconds("import", 1.0),
        StageSeconds("measure", 3.0 + 5.5),
        StageSeconds("race", 0.5),
    )
    assert clock.records()[1] == StageSeconds("measure", 9.5)  # it goes on
    assert [event.stage for event in events] == list(stages)


def test_a_run_without_events() -> None:
    assert StageClock().records() == ()
