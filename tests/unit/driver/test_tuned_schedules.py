"""Schedules in `tune`: searched, stored, requested, and left out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.scheduled_products import NATIVE, REFERENCE, WEIGHT, product, with_winner

import intarsia as ia
from intarsia.autoschedule.tuning.search_schedules import TOO_SMALL
from intarsia.autoschedule.tuning.tune_schedule import TuneSchedule
from intarsia.driver.baselines import without_slower
from intarsia.driver.progress import Progress, TuneStage
from intarsia.driver.tuning_pipelines import deciding_passes, with_schedules
from intarsia.measure.database import Database
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule import ScheduleLog
from intarsia.support.errors import UsageError
from intarsia.tune.passes import TuneLayout

pytestmark = pytest.mark.processes

pytest.importorskip("llvmlite", reason="schedules are of native kernels")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the user that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "kept.db") as opened:
        yield opened


def test_the_default_pipeline_tunes_schedules() -> None:
    passes = deciding_passes(None, None)
    assert passes[-1] == TuneSchedule()
    assert with_schedules(passes, None, None, None, None, [NATIVE]) == passes
    assert with_schedules(passes, False, None, None, None, [NATIVE]) == passes[:-1]
    assert with_schedules(passes, None, None, None, "tcp://127.0.0.1:1", [NATIVE]) == passes[:-1]
    requested = TuneSchedule(seconds=30.0, trials=9, least_share=0.0, share=1.0)
    assert with_schedules([TuneLayout()], True, 30.0, 9, None, [NATIVE]) == (TuneLayout(), requested)
    with pytest.raises(UsageError, match="native is not among the targets"):
        with_schedules(passes, True, 30.0, None, None, [REFERENCE])


def test_of_native_with_and_without_schedules_the_faster_stays() -> None:
    scheduled = NATIVE.with_options(schedules="0123456789abcdef")
    seconds = {NATIVE: 2.0, scheduled: 1.0, REFERENCE: math.inf}
    assert without_slower([NATIVE, REFERENCE, scheduled], seconds.__getitem__) == [scheduled, REFERENCE]
    seconds[scheduled] = 3.0
    assert without_slower([NATIVE, REFERENCE, scheduled], seconds.__getitem__) == [NATIVE, REFERENCE]


def test_small_kernels_are_not_searched(database: Database) -> None:
    result = ia.tune(
        product(),
        budget="60s",
        targets=[NATIVE],
        passes=[TuneSchedule()],
        partitions=False,
        database=database,
    )
    assert [(row.trials, row.reason) for row in result.schedules] == [(0, TOO_SMALL)]
    assert {record.name for record in result.candidates} == {"native threads=1"}


def test_tune_searches_schedules_and_goes_on_where_it_was(database: Database) -> None:
    seen: list[Progress] = []

    def tuned(trials: int) -> ia.TuneResult:
        return ia.tune(
            product(),
            budget="10m",
            targets=[NATIVE],
            schedules=True,
            schedule_trials=trials,
            partitions=False,
            database=database,
            on_progress=seen.append,
        )

    result = tuned(3)
    (row,) = result.schedules
    assert row.trials == 3
    assert row.default_seconds is not None
    assert result.to_json()["schedules"] == [row.to_json()]
    assert "native threads=1" in {record.name for record in result.candidates}
    counts = [each.scheduled.row.trials for each in seen if each.scheduled is not None]
    assert counts == [1, 3]
    seen.clear()
    again = tuned(3)
    assert again.finished_at is not None
    assert again.schedules == (row,)
    assert all(each.scheduled is None for each in seen)
    (more,) = tuned(4).schedules
    assert more.trials == 4
    assert TuneStage.SCHEDULES in {each.stage for each in seen}
    assert [each.scheduled.row.trials for each in seen if each.scheduled is not None] == [4]


def test_tune_measures_stored_schedules(database: Database) -> None:
    (task,) = with_winner(product(), database)
    targets = [NATIVE, REFERENCE]
    result = ia.tune(product(), budget="60s", targets=targets, partitions=False, database=database)
    log = ScheduleLog.of_states([LoopState.initial(task.task.dag)])
    lines = [line for record in result.explanation.tuning for line in record.lines()]
    measured = [line for line in lines if f"schedule log {log.digest}: " in line]
    assert measured  # where it is faster it is a candidate of the placement, too
    assert all(" ms" in line for line in measured)
    (row,) = result.schedules
    assert row.is_chosen
    assert row.reason == "it computes and moves too little to matter"
    x = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)
    np.testing.assert_allclose(result.executable(x), np.maximum(x @ WEIGHT, 0), rtol=1e-4, atol=1e-4)


def test_stored_schedules_are_left_out_on_request(database: Database) -> None:
    with_winner(product(), database)
    result = ia.tune(
        product(),
        budget="0.5s",
        targets=[NATIVE, REFERENCE],
        partitions=False,
        schedules=False,
        database=database,
    )
    assert {record.name for record in result.candidates} == {"native threads=1", "reference"}


def test_schedules_are_searched_on_this_machine_only() -> None:
    with pytest.raises(UsageError, match="schedules are searched on this machine"):
        ia.tune(product(), targets=[NATIVE], schedules=True, cluster="tcp://127.0.0.1:1")


def test_a_locked_run_searches_no_schedules(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a locked run takes no schedules"):
        ia.tune(product(), schedules=True, plan=tmp_path / "plan.json", locked=True)
