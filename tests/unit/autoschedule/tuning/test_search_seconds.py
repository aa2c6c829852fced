"""How much of the time of a run a search of schedules gets."""

from __future__ import annotations

import math

import pytest
from tests.planned_meter import PlannedMeter

from intarsia.autoschedule.tuning.search_seconds import (
    SECONDS_EACH,
    SHARE,
    search_seconds,
    search_trials,
    seconds_each,
)
from intarsia.tune.run_control import RunControl


def control(left: float, spent: float = 4.0, *, proves: bool = False) -> RunControl:
    return RunControl(left, meter=PlannedMeter(spent, trials=3), proves=proves)


@pytest.mark.parametrize(
    ("spent", "proves", "expected"),
    [(0.1, False, 3.0), (1.0, False, 6.0), (4.0, False, 24.0), (50.0, False, 30.0), (0.1, True, 30.0)],
)
def test_small_models_do_not_wait_for_schedules(spent: float, expected: float, *, proves: bool) -> None:
    """Of 60 seconds half, or 6 for each second of measuring the toolchains alone, three at least."""
    assert search_seconds(60.0, SHARE, control(60.0, spent, proves=proves)) == pytest.approx(expected)


@pytest.mark.parametrize(("left", "expected"), [(5.0, 0.0), (7.0, 3.0)])
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


def test_each_kernel_gets_a_few_seconds_beside_other_passes() -> None:
    assert seconds_each(SHARE, control(60.0)) == SECONDS_EACH
    assert seconds_each(SHARE, control(60.0, proves=True)) == math.inf
    assert seconds_each(1.0, control(60.0)) == math.inf


def test_schedules_are_trials_of_the_run() -> None:
    run = RunControl(trials=11, meter=PlannedMeter())
    assert search_trials(None, run) == 5
    assert search_trials(3, run) == 3
    assert search_trials(None, control(60.0)) is None
    assert search_trials(7, control(60.0)) == 7
    assert not run.skipped
    few = RunControl(trials=1, meter=PlannedMeter())
    assert search_trials(None, few) == 0
    assert [skipped.what for skipped in few.skipped] == ["the search of schedules"]
