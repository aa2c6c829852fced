"""Native with a schedule book as one more target of `tune`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import intarsia as ia
from intarsia.autoschedule.extraction import ExtractedTask, extract_tasks
from intarsia.autoschedule.tuning.schedule_history import KeptSchedule, ScheduleHistory
from intarsia.driver import booked_targets
from intarsia.driver.baselines import without_slower
from intarsia.driver.booked_targets import BookedRun, ScheduleRequest
from intarsia.driver.progress import Progress, TuneStage
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var
from intarsia.measure.database import Database
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule import ScheduleBook
from intarsia.native.schedule.schedule_book import history_text
from intarsia.op import call
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.toolchain.native.caches import schedule_folder
from intarsia.toolchain.this_host import this_host
from intarsia.tune.contest.candidate_record import Status

pytestmark = pytest.mark.processes

pytest.importorskip("llvmlite", reason="schedules are of native kernels")

NATIVE = Target("cpu -toolchain=native -threads=1")
REFERENCE = Target("cpu -toolchain=reference")
WEIGHT = np.random.default_rng(0).standard_normal((16, 24)).astype(np.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the user that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "kept.db") as opened:
        yield opened


def product(operator: str = "Relu") -> IRModule:
    """A matrix product, and an operator behind it."""
    x = Var("x", checked_type=TensorType((8, 16), DType.FLOAT32))
    return IRModule.from_expr(Function((x,), call(operator, call("MatMul", x, Constant(WEIGHT)))))


def booking(module: IRModule, database: Database | None, notes: list[str] | None = None) -> BookedRun:
    told = [] if notes is None else notes
    return BookedRun(module, this_host(), database, 0, lambda _: None, told.append, lambda: False)


def with_winner(module: IRModule, database: Database) -> tuple[ExtractedTask, ...]:
    """Let the loops as they are declared have won all races."""
    tasks, history = extract_tasks(module, NATIVE), ScheduleHistory(database, this_host())
    for task in tasks:
        history.keep(task, KeptSchedule(history_text(LoopState.initial(task.task.dag)), 1e-6, 2e-6, 9))
    return tasks


def test_where_nothing_was_searched_nothing_is_looked_at(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(booked_targets, "BookedRun", None)
    result = ia.tune(product(), budget="0.5s", targets=[REFERENCE], partitions=False, database=database)
    assert [record.name for record in result.candidates] == ["reference"]


def test_what_has_won_before_is_one_more_target(database: Database) -> None:
    (task,) = with_winner(product(), database)
    found = booking(product(), database).booked([NATIVE, REFERENCE], None)
    book = ScheduleBook.of_states([LoopState.initial(task.task.dag)])
    assert found.targets == (NATIVE, REFERENCE, NATIVE.with_options(schedules=book.digest))
    assert ScheduleBook.load(schedule_folder(), book.digest) == book
    assert booking(product("Tanh"), database).booked([NATIVE], None).targets == (NATIVE,)
    assert booking(product(), database).booked([REFERENCE], None).targets == (REFERENCE,)


def test_schedules_need_native_among_the_targets() -> None:
    with pytest.raises(UsageError, match="native is not among the targets"):
        booking(product(), None).booked([REFERENCE], ScheduleRequest(1.0, None))


def test_what_native_cannot_do_is_noted(database: Database) -> None:
    notes: list[str] = []
    module = product("Unique")
    assert booking(module, None, notes).booked([NATIVE], ScheduleRequest(1.0, None)).targets == (NATIVE,)
    assert [note.partition(":")[0] for note in notes] == ["no schedules are searched"]
    with_winner(product(), database)
    assert booking(module, database, notes).booked([NATIVE], None).targets == (NATIVE,)
    assert len(notes) == 1


def test_of_native_with_and_without_a_book_the_faster_stays() -> None:
    booked = NATIVE.with_options(schedules="0123456789abcdef")
    seconds = {NATIVE: 2.0, booked: 1.0, REFERENCE: math.inf}
    assert without_slower([NATIVE, REFERENCE, booked], seconds.__getitem__) == [booked, REFERENCE]
    seconds[booked] = 3.0
    assert without_slower([NATIVE, REFERENCE, booked], seconds.__getitem__) == [NATIVE, REFERENCE]


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
    (again,) = tuned(3).schedules
    assert (again.trials, again.is_chosen) == (row.trials, row.is_chosen)
    assert TuneStage.SCHEDULES in {each.stage for each in seen}
    assert all(each.scheduled is None for each in seen)


def test_tune_measures_what_has_won_before(database: Database) -> None:
    with_winner(product(), database)
    targets = [NATIVE, REFERENCE]
    result = ia.tune(product(), budget="0.5s", targets=targets, partitions=False, database=database)
    statuses = {record.name: record.status for record in result.candidates}
    (booked,) = (name for name in statuses if "schedules=" in name)
    assert statuses == {
        "native threads=1": Status.MEASURED,
        booked: Status.MEASURED,
        "reference": statuses["reference"],
    }
    assert result.schedules == ()
    x = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)
    np.testing.assert_allclose(result.executable(x), np.maximum(x @ WEIGHT, 0), rtol=1e-4, atol=1e-4)


def test_schedules_are_searched_on_this_machine_only() -> None:
    with pytest.raises(UsageError, match="schedules are searched on this machine"):
        ia.tune(product(), targets=[NATIVE], schedules=True, cluster="tcp://127.0.0.1:1")


def test_a_locked_run_searches_no_schedules(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a locked run takes no schedules"):
        ia.tune(product(), schedules=True, plan=tmp_path / "plan.json", locked=True)
