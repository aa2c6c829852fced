"""Schedules in the database: by what is computed, threads and machine."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.native_workloads import matmul
from tests.searched_programs import task_of

from intarsia.autoschedule.measuring import (
    ReplayMeasurer,
    ScheduleDatabase,
    best_record,
    measurement_of,
)
from intarsia.autoschedule.population import sample_initial_population
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.measure.database import Database, Measurement, MeasureRecord
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.schedules.kernel_workload import kernel_digest, schedule_candidate, schedule_target
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.target import Host

HERE = Host.detect()
THERE = replace(HERE, cores=HERE.cores + 62)
TASK = task_of(matmul(16, 16, 16), cores=2)
STATES = sample_initial_population(TASK, generate_sketches(TASK), 12, Random(4))


def worked(*costs: float, at: float = 1000.0) -> MeasureResult:
    """A measurement that gave costs."""
    return MeasureResult(costs, MeasureError.OK, "", 0.75, at)


FAILED = MeasureResult((), MeasureError.WRONG_ANSWER, "C[0] is 1, expected 2", 0.75, 1003.0)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty one."""
    with Database.open(tmp_path / "measurements.db") as opened:
        yield opened


def test_what_was_kept_comes_back(database: Database) -> None:
    kept = ScheduleDatabase(database, HERE)
    kept.keep(TASK, STATES[:3], [worked(0.5, 0.25, 0.375, at=1002.0), worked(0.125, at=1001.0), FAILED])
    records = kept.records(TASK)
    assert [record.steps for record in records] == [STATES[place].transform_steps for place in (1, 0, 2)]
    assert [measurement_of(record).costs for record in records] == [(0.125,), (0.5, 0.25, 0.375), ()]
    assert measurement_of(records[2]).error is MeasureError.WRONG_ANSWER
    assert {record.task for record in records} == {TASK.record_task}
    best = best_record(kept.records(TASK))
    assert best is not None
    assert LoopState.replay(TASK.dag, best.steps).transform_steps == STATES[1].transform_steps
    assert ReplayMeasurer(records).measure(TASK, STATES[:1])[0].costs == (0.5, 0.25, 0.375)


def test_measured_again_adds_to_what_was_measured(database: Database) -> None:
    kept = ScheduleDatabase(database, HERE)
    kept.keep(TASK, STATES[:2], [worked(0.1), worked(0.2)])
    kept.keep(TASK, STATES[:1], [worked(0.3, 0.4, at=2000.0)])
    (other, again) = kept.records(TASK)
    assert (other.result.costs, again.result.costs) == ((0.2,), (0.1, 0.3, 0.4))
    best = best_record(kept.records(TASK))
    assert best is not None
    assert best.steps == STATES[1].transform_steps


def test_a_failure_after_a_success_takes_the_costs_away(database: Database) -> None:
    kept = ScheduleDatabase(database, HERE)
    kept.keep(TASK, STATES[:1], [worked(0.1)])
    kept.keep(TASK, STATES[:1], [FAILED])
    assert best_record(kept.records(TASK)) is None
    assert [measurement_of(each).error for each in kept.records(TASK)] == [MeasureError.WRONG_ANSWER]


def renamed() -> ComputeDAG:
    """The product of TASK under other names."""
    x, y = te.placeholder((16, 16), name="X"), te.placeholder((16, 16), name="Y")
    c = te.reduce_axis(16, "c")
    body = te.compute(
        (16, 16),
        lambda a, b: te.sum(x[a, c] * y[c, b], axis=c),
        name="Z",
        attrs={"layout_free_placeholders": ("Y",)},
    )
    return ComputeDAG((x, y, body))


def test_names_do_not_count(database: Database) -> None:
    kept = ScheduleDatabase(database, HERE)
    kept.keep(TASK, STATES[:1], [worked(0.1)])
    other = SearchTask.of_dag(renamed(), TASK.target, HardwareParams(2))
    best = best_record(kept.records(other))
    assert best is not None
    assert best.task.workload_key == other.workload_key != TASK.workload_key
    assert kernel_digest(other.dag) == kernel_digest(TASK.dag)


def test_threads_layouts_and_given_contents_are_apart(database: Database) -> None:
    kept = ScheduleDatabase(database, HERE)
    kept.keep(TASK, STATES, [worked(0.1 + place) for place in range(len(STATES))])
    packed = replace(TASK, layout_rewrite_option=LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED)
    given = replace(TASK, task_inputs={"A": np.ones((16, 16), np.float32)})
    for other in (replace(TASK, hardware=HardwareParams(1)), packed, given):
        assert best_record(kept.records(other)) is None
        assert kept.records(other) == ()
    kept.keep(packed, STATES[3:4], [worked(99.0)])
    best = best_record(kept.records(packed))
    assert best is not None
    assert (best.steps, best.result.costs) == (STATES[3].transform_steps, (99.0,))


def test_schedules_of_other_machines_are_hints_without_costs(database: Database) -> None:
    there = ScheduleDatabase(database, THERE)
    there.keep(TASK, STATES[:4], [worked(0.4), worked(0.1), FAILED, worked(0.2)])
    here = ScheduleDatabase(database, HERE)
    assert best_record(here.records(TASK)) is None
    assert here.records(TASK) == ()
    assert here.hints(TASK, 2) == (STATES[1], STATES[3])
    assert there.hints(TASK, 2) == ()


def test_traces_that_are_no_schedules_are_passed_over(database: Database) -> None:
    kept = ScheduleDatabase(database, HERE)
    kept.keep(TASK, STATES[:1], [worked(0.5)])
    result = MeasureResult((0.1,), MeasureError.OK, "", 0.5, 1000.0)
    workload, target = kernel_digest(TASK.dag), str(schedule_target(2))
    for host in (HERE.digest, THERE.digest):
        for trace in ('{"layout":1,"steps":[["XX",1]]}', "[]", '{"layout":1}', '{"layout":1,"steps":[3]}'):
            database.commit(MeasureRecord(workload, target, host, "schedule", trace, (Measurement(result),)))
    assert [record.steps for record in kept.records(TASK)] == [STATES[0].transform_steps]
    best = best_record(kept.records(TASK))
    assert best is not None
    assert best.steps == STATES[0].transform_steps
    assert kept.hints(TASK, 8) == ()


def test_the_form_of_a_schedule_in_the_database() -> None:
    state = LoopState.initial(TASK.dag).split("C", "i", [4])
    candidate = schedule_candidate(state, TASK.layout_rewrite_option)
    assert candidate.kind == "schedule"
    assert candidate.text == '{"layout":1,"steps":[["SP",2,0,16,[4],1]]}'
    assert str(schedule_target(4)) == "cpu -toolchain=native -threads=4"
