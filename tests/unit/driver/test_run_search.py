"""What the search of a run leaves out."""

from __future__ import annotations

from typing import cast

import pytest
from tests.planned_meter import PlannedMeter

from intarsia.driver import run_search
from intarsia.driver.machine_bound import MachineBound
from intarsia.driver.run_search import RunSearch
from intarsia.driver.run_settings import RunSettings
from intarsia.driver.tune_options import RunCallbacks
from intarsia.driver.tune_run import TuneRun
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.testbed import Testbed
from intarsia.target import Target
from intarsia.tune.contest.contest import Contest


class Results:
    """A contest in which one candidate took a second."""

    def __init__(self, spent: float = 2.0) -> None:
        self.measurer = PlannedMeter(spent, trials=3)

    def results(self) -> dict[str, MeasureResult]:
        return {"one": MeasureResult((1.0,), MeasureError.OK, "", 2.0, 0.0)}


def settings(*, seconds: float = 60.0, schedule_seconds: float = 0.0, proves: bool = False) -> RunSettings:
    return RunSettings(
        workload=Workload(IRModule({}), "any"),
        targets=(Target("cpu -toolchain=native -threads=2"),),
        seconds=seconds,
        trials=None,
        seed=0,
        searches=True,
        passes=(),
        plan=None,
        proves=proves,
        schedule_seconds=schedule_seconds,
    )


def search(contest: Results, *, proves: bool = False) -> RunSearch:
    return RunSearch(cast("Contest", contest), settings(proves=proves), 60.0, RunCallbacks())


def reason(monkeypatch: pytest.MonkeyPatch, bound: float, *, proves: bool = False) -> str:
    monkeypatch.setattr(run_search, "machine_bound", lambda *_: MachineBound(bound))
    return search(Results(), proves=proves)._reason_by_bound()


def test_a_program_at_the_bound_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason(monkeypatch, 0.96).startswith("it runs at 96 % of the bound")
    assert reason(monkeypatch, 0.9) == ""
    assert reason(monkeypatch, 0.0) == ""
    assert reason(monkeypatch, 0.96, proves=True) == ""


def test_a_bound_that_a_program_beats_was_measured_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason(monkeypatch, 1.2) == ""


def test_a_requested_search_of_schedules_leaves_other_passes_their_time() -> None:
    """Of a minute with `--schedules` half is for schedules, and 60 % of the rest for all other passes.

    What each toolchain alone has taken counts against it.
    """
    asked = settings(seconds=30.0, schedule_seconds=30.0)
    testbed = cast("Testbed", None)  # nothing is measured
    run = TuneRun(asked, testbed, patience=1.0, build_patience=1.0, database=None, callbacks=RunCallbacks())
    for spent, expected in ((0.0, 30.0 + 18.0), (10.0, 30.0 + 12.0), (40.0, 20.0), (70.0, 0.0)):
        contest = cast("Contest", Results(spent))  # as above
        assert run._search(contest).seconds == pytest.approx(expected)
        assert run._seconds_left(contest) == max(0.0, 60.0 - spent)
