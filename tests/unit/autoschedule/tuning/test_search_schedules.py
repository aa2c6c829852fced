"""Searching schedules of all kernels of a model: shared budget, nothing lost, only what is faster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.schedule_measurers import FakeMeasurer, draft_seconds, failing

from intarsia.autoschedule.cost_model import usual_model
from intarsia.autoschedule.extraction import ExtractedTask
from intarsia.autoschedule.features import Machine
from intarsia.autoschedule.measuring import best_record
from intarsia.autoschedule.policy import PolicyOptions
from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.autoschedule.tuning.schedule_history import KeptSchedule, ScheduleHistory
from intarsia.autoschedule.tuning.schedule_model import ScheduleModel
from intarsia.autoschedule.tuning.schedule_records import ScheduleProgress
from intarsia.autoschedule.tuning.search_schedules import NO_TIME, TOO_SMALL, ScheduleSearch, search_schedules
from intarsia.ir import DType
from intarsia.measure.database import Database
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.native.roofline import Roofline
from intarsia.native.schedule.schedule_log import history_text
from intarsia.support.errors import ExecutionError, StoppedError, UsageError
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host

pytestmark = pytest.mark.quick_tests(8, also=["test_failures_are_counted_by_kind"])

TARGET = Target("cpu -toolchain=native -threads=2")
PEAK = 1e9
QUICK = PolicyOptions(
    sample_init_min_population=8, evolutionary_search_population=16, evolutionary_search_num_iters=1
)


def kernel(extent: int, weight: int = 1) -> ExtractedTask:
    """A matrix product as a task."""
    x = te.placeholder((32, extent), DType.FLOAT32, "x")
    w = te.placeholder((extent, 64), DType.FLOAT32, "w")
    k = te.reduce_axis(extent, "k")
    y = te.compute((32, 64), lambda i, j: te.sum(x[i, k] * w[k, j], k), "y")
    task = ExtractedTask.of_kernel(
        ComputeDAG((x, w, y)), TARGET, Isa.host(), HardwareParams(2), f"product{extent}", {}
    )
    return replace(task, weight=weight)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "kept.db") as opened:
        yield opened


def slow_default(task: ExtractedTask) -> Callable[[LoopState], float]:
    """Costs by which the default schedule is slower than all others."""
    text = history_text(task.default_state)
    return lambda state: 1.0 if history_text(state) == text else min(0.5, draft_seconds(state))


def search(measurer: FakeMeasurer, database: Database | None = None, **rest: Any) -> ScheduleSearch:
    history = ScheduleHistory(database, this_host())
    return ScheduleSearch(measurer, history, PEAK, options=QUICK, on_measured=history.on_measured, **rest)


def test_the_default_schedule_of_each_kernel_is_measured_first() -> None:
    tasks = [kernel(16), kernel(64), kernel(32, weight=9)]
    measurer = FakeMeasurer()
    tuned = search_schedules(tasks, search(measurer, trials=12))
    assert [len(states) for states in measurer.rounds[:3]] == [1, 1, 1]
    heavy_first = [tasks[2], tasks[1], tasks[0]]
    assert [history_text(states[0]) for states in measurer.rounds[:3]] == [
        history_text(task.default_state) for task in heavy_first
    ]
    assert tuned.trials == len(measurer.measured) == 12
    assert sum(row.trials for row in tuned.rows) == 12


def test_what_is_faster_than_the_default_is_in_the_log() -> None:
    task = kernel(32)
    measurer = FakeMeasurer(slow_default(task))
    tuned = search_schedules([task], search(measurer, trials=12))
    (row,) = tuned.rows
    assert row.is_chosen
    assert row.default_seconds == 1.0
    assert row.seconds is not None
    assert row.seconds <= 0.5
    assert row.flop_per_second == pytest.approx(task.flop_count / row.seconds)
    assert row.share_of_peak == pytest.approx(task.flop_count / row.seconds / PEAK)
    state = tuned.log.lookup(task.task.dag)
    assert state is not None
    assert slow_default(task)(state) == row.seconds
    assert history_text(task.default_state) in map(history_text, measurer.contests[0])


def test_what_does_not_win_the_race_is_not_in_the_log() -> None:
    task = kernel(32)
    measurer = FakeMeasurer(slow_default(task), again=lambda state: 0.7)
    tuned = search_schedules([task], search(measurer, trials=12))
    assert len(tuned.log) == 0
    assert [(row.is_chosen, row.seconds, row.default_seconds) for row in tuned.rows] == [(False, 0.7, 0.7)]


def test_failures_are_counted_by_kind() -> None:
    task = kernel(32)
    tuned = search_schedules([task], search(FakeMeasurer(failing(3)), trials=14))
    (row,) = tuned.rows
    assert 0 < row.failed[MeasureError.RUNTIME] < 14
    assert row.to_json()["failed"] == {"runtime": row.failed[MeasureError.RUNTIME]}


def test_a_search_goes_on_where_it_ended(database: Database) -> None:
    tasks = [kernel(16), kernel(32)]
    first = FakeMeasurer()
    search_schedules(tasks, search(first, database, trials=14))
    again = FakeMeasurer()
    same = search_schedules(tasks, search(again, database, trials=14))
    assert again.rounds == []
    assert again.contests == []
    assert same.trials == 0
    assert sum(row.trials for row in same.rows) == 14
    more = FakeMeasurer()
    search_schedules(tasks, search(more, database, trials=20))
    assert len(more.measured) == 6
    texts = {(state.initial_dag.tensors[0].shape, state.text) for state in first.measured}
    assert not texts & {(state.initial_dag.tensors[0].shape, state.text) for state in more.measured}


def at_speed(*tasks: ExtractedTask) -> Callable[[LoopState], float]:
    """Return costs by which the default schedules take a second, and all others half of it."""
    texts = {history_text(task.default_state) for task in tasks}
    return lambda state: 1.0 if history_text(state) in texts else 0.5


def roofline(seconds: float) -> Callable[[], Roofline]:
    """Return a roofline at which a multiplication and an addition take some seconds."""
    return lambda: Roofline(1 / seconds, 1e15, 0)


def test_only_kernels_far_from_their_roofline_are_searched() -> None:
    near, far = kernel(64), kernel(16)
    per_operation = 0.9 / near.flop_count  # the small kernel takes as long, for a quarter of the operations
    measurer = FakeMeasurer(at_speed(near, far))
    settings = search(measurer, trials=12, roofline=roofline(per_operation))
    tuned = search_schedules([near, far], settings)
    rows = {row.name: row for row in tuned.rows}
    assert rows["product64"].reason == "it is near its roofline: at 90% of it"
    assert (rows["product64"].trials, rows["product64"].is_chosen) == (1, False)
    assert (rows["product16"].trials, rows["product16"].is_chosen, rows["product16"].reason) == (11, True, "")
    assert len(tuned.log) == 1


def test_a_kernel_with_a_small_share_is_not_searched() -> None:
    often, rare = kernel(64, weight=1000), kernel(16)
    measurer = FakeMeasurer(at_speed(often, rare))
    settings = search(measurer, trials=6, roofline=roofline(1e-15), least_share=0.002)
    rows = {row.name: row for row in search_schedules([often, rare], settings).rows}
    assert rows["product16"].reason == "it can gain too little: 0.1% of the kernels' time at most"
    assert (rows["product16"].trials, rows["product64"].trials) == (1, 5)


def test_kernels_with_little_work_are_not_measured() -> None:
    small, large = kernel(16), kernel(64)
    measurer = FakeMeasurer(at_speed(small, large))
    work = 2 * small.flop_count + 8 * small.bytes_moved
    settings = search(measurer, trials=6, roofline=roofline(1e-15), least_work=work)
    rows = {row.name: row for row in search_schedules([small, large], settings).rows}
    assert (rows["product16"].trials, rows["product16"].reason) == (0, TOO_SMALL)
    assert (rows["product64"].trials, rows["product64"].reason) == (6, "")


def test_kernels_with_a_time_within_the_program_are_chosen_by_it() -> None:
    slow, fast, unknown = kernel(64), kernel(32), kernel(16)
    measurer = FakeMeasurer(at_speed(slow, fast, unknown))
    seconds = {slow.key: 1.0, fast.key: 1e-4}
    settings = search(measurer, trials=9, roofline=roofline(1e-15), seconds_in_program=seconds)
    rows = {row.name: row for row in search_schedules([slow, fast, unknown], settings).rows}
    assert rows["product32"].reason == "it can gain too little: 0.0% of the kernels' time at most"
    assert (rows["product32"].trials, rows["product32"].default_seconds) == (0, None)
    assert (rows["product64"].reason, rows["product16"].reason) == ("", "")
    assert rows["product64"].trials + rows["product16"].trials == 9
    first = measurer.measured[0]
    assert history_text(first) == history_text(unknown.default_state), "its time was unknown"


def test_short_searches_are_of_the_kernels_that_can_gain_most() -> None:
    rare, often = kernel(64), kernel(32, weight=9)
    measurer = FakeMeasurer(at_speed(rare, often))
    seconds = dict.fromkeys((rare.key, often.key), 1.0)
    settings = search(measurer, seconds=4.0, trials=6, roofline=roofline(1e-15), seconds_in_program=seconds)
    rows = {row.name: row for row in search_schedules([rare, often], settings).rows}
    assert (rows["product64"].trials, rows["product64"].reason) == (0, NO_TIME)
    assert (rows["product32"].trials, rows["product32"].reason) == (6, "")


@pytest.mark.slow
def test_rounds_of_a_short_search_are_short() -> None:
    slow = kernel(64)
    measurer = FakeMeasurer(at_speed(slow))
    settings = search(measurer, seconds=4.0, trials=9, roofline=roofline(1e-15))
    search_schedules([slow], settings)
    assert max(map(len, measurer.rounds)) <= 6


def test_a_search_ends_when_nothing_more_is_expected_and_serves_other_models(database: Database) -> None:
    shared, other = kernel(32), kernel(16)
    first = FakeMeasurer(at_speed(shared))
    settings = search(first, database, roofline=roofline(1e-15))
    log = search_schedules([shared], settings).log
    assert 48 < len(first.measured) < 100
    second = FakeMeasurer(at_speed(shared, other))
    tuned = search_schedules([shared, other], search(second, database, roofline=roofline(1e-15)))
    shapes = {state.initial_dag.tensors[0].shape for state in second.measured}
    assert shapes == {(32, 16)}
    assert tuned.log.lookup(shared.task.dag) == log.lookup(shared.task.dag) is not None
    assert len(tuned.log) == 2


def test_measurements_come_back_with_the_result_of_their_race(database: Database) -> None:
    task = kernel(32)
    measurer = FakeMeasurer(slow_default(task), again=lambda state: 0.7)
    search_schedules([task], search(measurer, database, trials=12))
    history = ScheduleHistory(database, this_host())
    best = best_record(history.records(task))
    assert best is not None
    assert best.is_confirmed
    assert (best.steps, best.result.costs) == (task.default_state.transform_steps, (0.7,))
    (row,) = search_schedules([task], search(FakeMeasurer(), database, trials=12)).rows
    assert (row.seconds, row.is_chosen) == (0.7, False)


def test_a_wish_to_stop_ends_it_and_what_was_measured_is_kept(database: Database) -> None:
    measurer, task = FakeMeasurer(), kernel(32)
    stop = lambda: len(measurer.measured) >= 10  # noqa: E731  # asked again and again
    tuned = search_schedules([task], search(measurer, database, should_stop=stop))
    assert measurer.contests == []
    assert tuned.trials == len(measurer.measured) >= 10
    assert len(ScheduleHistory(database, this_host()).records(task)) == tuned.trials
    assert len(tuned.log) == 0


def test_a_round_that_is_stopped_ends_it_too(database: Database) -> None:
    task = kernel(32)
    text = history_text(task.default_state)

    def seconds(state: LoopState) -> float:
        if history_text(state) != text:
            raise StoppedError("measuring was stopped")
        return 1.0

    tuned = search_schedules([task], search(FakeMeasurer(seconds), database))
    assert (tuned.trials, len(tuned.log)) == (1, 0)
    assert [row.seconds for row in tuned.rows] == [1.0]


def test_the_time_of_all_searches_counts(database: Database) -> None:
    tasks = [kernel(16)]
    history = ScheduleHistory(database, this_host())
    history.keep_spent(tasks, 60.0)
    measurer = FakeMeasurer()
    tuned = search_schedules(tasks, search(measurer, database, seconds=60.0))
    assert (measurer.rounds, tuned.trials) == ([], 0)
    search_schedules(tasks, search(measurer, database, seconds=math.inf, trials=5))
    assert len(measurer.measured) == 5
    assert history.spent(tasks) > 60.0
    assert history.spent([kernel(17)]) == 0.0


@pytest.mark.slow
def test_a_search_that_its_time_has_ended_is_not_repeated(database: Database) -> None:
    tasks = [kernel(16)]
    first, again, more = FakeMeasurer(), FakeMeasurer(), FakeMeasurer()
    search_schedules(tasks, search(first, database, seconds=1.0))
    assert first.rounds
    search_schedules(tasks, search(again, database, seconds=1.0))
    assert (again.rounds, again.contests) == ([], [])
    search_schedules(tasks, search(more, database, seconds=1e6, trials=len(first.measured) + 3))
    assert len(more.measured) == 3
    assert ScheduleHistory(database, this_host()).spent(tasks) < 1e6


def test_progress_tells_the_kernel_of_the_round() -> None:
    seen: list[ScheduleProgress] = []
    tasks = [kernel(16), kernel(32)]
    search_schedules(tasks, search(FakeMeasurer(), trials=12, on_progress=seen.append))
    assert [each.row.name for each in seen[:2]] == ["product32", "product16"]
    assert [each.trials for each in seen][-1] == 12
    assert seen[-1].fraction == 1.0
    assert seen[0].objective is None
    assert seen[-1].objective is not None


def test_a_model_without_native_kernels_is_an_error() -> None:
    with pytest.raises(UsageError, match="the program has no native kernels"):
        search_schedules([], search(FakeMeasurer()))


def test_what_has_won_is_found_again(database: Database) -> None:
    task, other, history = kernel(32), kernel(16), ScheduleHistory(database, this_host())
    assert history.is_empty
    assert len(history.make_log([task, other])) == 0
    tuned = search_schedules([task], search(FakeMeasurer(slow_default(task)), database, trials=12))
    assert not history.is_empty
    assert history.make_log([task, other]) == tuned.log
    history.keep(task, KeptSchedule(None, 1.0, 1.0, 21))
    assert len(history.make_log([task])) == 0
    elsewhere = ScheduleHistory(database, replace(this_host(), cpu_model="another"))
    assert elsewhere.is_empty
    assert elsewhere.find(task) is None
    nowhere = ScheduleHistory(None, this_host())
    nowhere.keep(task, KeptSchedule(None, 1.0, 1.0, 21))
    assert nowhere.is_empty


@pytest.mark.slow
def test_a_model_learns_from_searches_of_other_models(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "samples.npz"
    search_schedules([kernel(32)], search(FakeMeasurer(), trials=12, samples=path))
    machine = Machine.of_isa(Isa.host(), 2)
    first = ScheduleModel.open(usual_model(machine), path)
    assert len(first.model) == 12
    assert first.learned == {kernel(32).task.workload_key}
    search_schedules([kernel(16)], search(FakeMeasurer(), trials=12, samples=path))
    assert len(ScheduleModel.open(usual_model(machine), path).model) == 24
    path.write_bytes(b"no samples")
    assert len(ScheduleModel.open(usual_model(machine), path).model) == 0


def test_a_kernel_without_a_reference_result_stays_as_it_is() -> None:
    broken, fine = kernel(32), kernel(16)

    class Measurer(FakeMeasurer):
        def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
            if task is broken.task:
                raise ExecutionError("the reference result of a task cannot be computed")
            return super().measure(task, states)

    tuned = search_schedules([broken, fine], search(Measurer(slow_default(fine)), trials=12))
    rows = {row.name: row for row in tuned.rows}
    assert (rows["product32"].trials, rows["product32"].seconds) == (0, None)
    assert rows["product32"].failed == {MeasureError.UNKNOWN: 1}
    assert (rows["product16"].trials, rows["product16"].is_chosen) == (12, True)
