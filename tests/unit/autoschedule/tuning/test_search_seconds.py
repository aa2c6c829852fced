"""How much of the time of a run a search of schedules gets."""

from __future__ import annotations

import pytest
from tests.planned_meter import PlannedMeter

from intarsia.autoschedule.tuning.search_seconds import SHARE, search_seconds
from intarsia.tune.run_control import RunControl


def control(left: float, spent: float = 4.0, *, proves: bool = False) -> RunControl:
    return RunControl(left, meter=PlannedMeter(spent, trials=3), proves=proves)


@pytest.mark.parametrize(
    ("spent", "proves", "expected"),
    [(0.1, False, 8.0), (1.0, False, 8.0), (4.0, False, 24.0), (50.0, False, 30.0), (0.1, True, 30.0)],
)
def test_small_models_do_not_wait_for_schedules(spent: float, expected: float, *, proves: bool) -> None:
    """Of 60 seconds half, or 6 for each second of measuring the toolchains alone, eight at least."""
    assert search_seconds(60.0, SHARE, control(60.0, spent, proves=proves)) == pytest.approx(expected)


@pytest.mark.parametrize(("left", "expected"), [(15.0, 0.0), (17.0, 8.0)])
def test_schedules_are_not_searched_in_less_time_than_a_search_takes(left: float, expected: float) -> None:
    run = control(left)
    assert search_seconds(60.0, SHARE, run) == pytest.approx(expected)
    assert bool(run.skipped) == (expected == 0)


def test_a_requested_search_takes_all_of_the_time() -> None:
    assert search_seconds(60.0, 1.0, control(15.0)) == 15.0
    assert search_seconds(10.0, 1.0, control(15.0)) == 10.0
    run = control(0.5)
    assert search_seconds(60.0, 1.0, run) == 0.0
    assert [skipped.what for skipped in run.skipped] == ["the search of schedules"]


def test_without_a_limit_of_the_run_only_that_of_the_search_counts() -> None:
    assert search_seconds(60.0, SHARE, RunControl()) == 60.0
    run = control(15.0)
    assert search_seconds(0.0, SHARE, run) == 0.0
    assert not run.skipped
