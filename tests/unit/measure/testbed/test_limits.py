"""How long candidates may take: limits follow the budget, and the best candidate so far."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.measure.quick_testbed import as_input, quick_testbed

from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import TestbedLimits
from intarsia.measure.workers import TaskLimits

pytestmark = pytest.mark.processes

HANGS = Candidate("test bad to run", {"fault": None, "seconds": 600.0})
WORKS = Candidate("test bad to run", {"fault": None})
NEVER_BUILT = Candidate("test bad to build", {"fault": "loop"})


@pytest.mark.parametrize(
    ("budget", "build", "run"),
    [(1.0, 60.0, 20.0), (10.0, 60.0, 20.0), (25.0, 75.0, 50.0), (300.0, 120.0, 120.0)],
)
def test_limits_follow_the_budget(budget: float, build: float, run: float) -> None:
    limits = TestbedLimits.of_budget(budget)
    assert (limits.build_seconds, limits.run_seconds) == (build, run)


@pytest.mark.parametrize(("shortest", "limit"), [(None, 20.0), (0.1, 15.0), (1.8, 18.0), (9.0, 20.0)])
def test_limits_follow_the_best(shortest: float | None, limit: float) -> None:
    assert TestbedLimits.of_budget(5.0).of_run(shortest) == limit


@pytest.mark.slow
def test_a_candidate_that_hangs_is_ended_soon_after_the_best(tmp_path: Path) -> None:
    with quick_testbed(tmp_path) as testbed:
        testbed.limits = replace(testbed.limits, least_seconds=1.0, times_best=2.0)
        measurer = Measurer(testbed)
        (works,) = measurer.measure([as_input(WORKS)])
        (hangs,) = measurer.measure([as_input(HANGS)])
    assert works is not None
    assert works.is_ok
    assert hangs is not None
    assert hangs.error is MeasureError.RUN_TIMEOUT
    assert "600" not in hangs.message
    assert hangs.message.startswith("the task was ended at its limit of ")
    assert hangs.wall_seconds < 60.0


@pytest.mark.slow
@pytest.mark.parametrize(("patience", "counts"), [(0.0, True), (20.0, True), (120.0, False)])
def test_a_time_out_of_a_small_budget_is_no_result_for_a_large_one(
    tmp_path: Path, patience: float, *, counts: bool
) -> None:
    timed_out = MeasureResult((), MeasureError.RUN_TIMEOUT, "ended", 15.0, 1.0)
    with Database.open(tmp_path / "a.db") as database, quick_testbed(tmp_path) as testbed:
        Measurer(testbed, database).keep(as_input(HANGS), timed_out)
        measurer = Measurer(testbed, database, patience=patience)
        assert measurer.knows(as_input(HANGS)) is counts


@pytest.mark.parametrize("limit", [60.0, 120.0])
def test_a_build_that_took_too_long_is_built_again_where_more_time_is_given(
    tmp_path: Path, limit: float
) -> None:
    timed_out = MeasureResult((), MeasureError.BUILD_TIMEOUT, "ended", 60.0, 1.0)
    with Database.open(tmp_path / "a.db") as database, quick_testbed(tmp_path) as testbed:
        Measurer(testbed, database).keep(as_input(NEVER_BUILT), timed_out)
        measurer = Measurer(testbed, database, patience=120.0, build_patience=limit)
        assert measurer.knows(as_input(NEVER_BUILT)) is (limit == 60.0)


def test_the_limit_of_a_build_is_not_shared_out_among_others(tmp_path: Path) -> None:
    limit_s = 0.5
    with quick_testbed(tmp_path) as testbed:
        limited = replace(testbed, builder=replace(testbed.builder, limits=TaskLimits(limit_s)))
        several = [Candidate("test bad to build", {"fault": "loop", "number": number}) for number in range(3)]
        results = Measurer(limited).measure([as_input(each) for each in several])
    for result in results:
        assert result is not None
        assert result.error is MeasureError.BUILD_TIMEOUT
        assert result.wall_seconds >= limit_s
