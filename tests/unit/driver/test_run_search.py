"""What the search of a run leaves out, and how much of its time schedules get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from intarsia.autoschedule.tuning.tune_schedule import TuneSchedule
from intarsia.driver import run_search
from intarsia.driver.machine_bound import MachineBound
from intarsia.driver.run_search import RunSearch
from intarsia.driver.tuned_schedules import TunedSchedules
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.support.callbacks import never, silent
from intarsia.target import Target
from intarsia.tune.run_control import RunControl


@dataclass
class Meter:
    """Measuring the toolchains alone took some seconds."""

    spent: float
    trials: int = 3


class Results:
    """A contest in which one candidate took a second."""

    def __init__(self, spent: float = 2.0) -> None:
        self.measurer = Meter(spent)

    def results(self) -> dict[str, MeasureResult]:
        return {"one": MeasureResult((1.0,), MeasureError.OK, "", 2.0, 0.0)}


def search(contest: Results, *, proves: bool = False) -> RunSearch:
    return RunSearch(
        contest=contest,  # type: ignore[arg-type]
        workload=Workload(IRModule({}), "any"),
        targets=(Target("cpu -toolchain=native -threads=2"),),
        seconds=60.0,
        trials=None,
        seed=0,
        searches=True,
        passes=(),
        schedule_seconds=None,
        plan=None,
        proves=proves,
        report=silent,
        on_note=silent,
        should_stop=never,
    )


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


def schedule_seconds(monkeypatch: pytest.MonkeyPatch, run: RunSearch, left: float, spent: float) -> float:
    """Return the seconds that passes on schedules get, with some seconds left."""
    given: list[float] = []

    def noted(*arguments: float | Sequence[object]) -> TunedSchedules:
        given.extend(item for item in arguments if isinstance(item, float))
        return TunedSchedules()

    monkeypatch.setattr(run_search, "tune_schedules", noted)
    run._tune_schedules(RunControl(left, meter=Meter(spent)))
    (seconds,) = given
    return seconds


@pytest.mark.parametrize(
    ("spent", "proves", "expected"),
    [(0.1, False, 8.0), (1.0, False, 8.0), (4.0, False, 24.0), (50.0, False, 30.0), (0.1, True, 30.0)],
)
def test_small_models_do_not_wait_for_schedules(
    monkeypatch: pytest.MonkeyPatch, spent: float, expected: float, *, proves: bool
) -> None:
    """Of 60 seconds half, or 6 for each second of measuring the toolchains alone, eight at least."""
    run = search(Results(spent), proves=proves)
    assert schedule_seconds(monkeypatch, run, 60.0, spent) == pytest.approx(expected)


@pytest.mark.parametrize(("left", "expected"), [(15.0, 0.0), (17.0, 8.0)])
def test_schedules_are_not_searched_in_less_time_than_a_search_takes(
    monkeypatch: pytest.MonkeyPatch, left: float, expected: float
) -> None:
    run = replace(search(Results(4.0)), passes=(TuneSchedule(),))
    assert schedule_seconds(monkeypatch, run, left, 4.0) == pytest.approx(expected)
