"""Logs answer as the hardware did."""

from dataclasses import replace
from pathlib import Path
from random import Random

from tests.native_workloads import matmul
from tests.searched_programs import task_of

from intarsia.autoschedule.measuring import (
    PoolMeasurer,
    RecordToFile,
    ReplayMeasurer,
    load_records,
    record_of,
)
from intarsia.autoschedule.population import sample_initial_population
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.lowering import infer_bound

TASK = task_of(matmul(16, 16, 16), cores=1)
STATES = sample_initial_population(TASK, generate_sketches(TASK), 5, Random(2))


def worked(*costs: float) -> MeasureResult:
    """A measurement as it comes back from a log."""
    return MeasureResult(costs, MeasureError.OK, wall_seconds=0.5, timestamp=1600000000.0)


def test_the_log_of_a_run_gives_the_same_costs(measurer: PoolMeasurer, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    recording = replace(measurer, on_measured=(RecordToFile(path),))
    first = recording.measure(TASK, STATES[:4])
    best = recording.remeasure(TASK, STATES[1:3])
    RecordToFile(path)(TASK, STATES[1:3], best)
    replayed = ReplayMeasurer(load_records(path))
    assert [each.costs for each in replayed.measure(TASK, STATES[:4])] == [each.costs for each in first]
    assert [each.costs for each in replayed.remeasure(TASK, STATES[1:3])] == [each.costs for each in best]
    (unknown,) = replayed.measure(TASK, STATES[4:])
    assert (unknown.error, unknown.message) == (MeasureError.UNKNOWN, "this schedule is not in the log")


def test_answers_come_in_the_order_of_the_log() -> None:
    state = STATES[0]
    found = ReplayMeasurer([record_of(TASK, state, each) for each in (worked(0.5), worked(0.25, 0.75))])
    assert [found.measure(TASK, [state]) for _ in range(3)] == [
        [worked(0.5)],
        [worked(0.25, 0.75)],
        [worked(0.25, 0.75)],
    ]


def test_a_schedule_is_known_by_its_loops_too() -> None:
    init = LoopState.initial(TASK.dag)
    one = infer_bound(TASK.dag, init.split("C", "i", [4]).split("C", "j", [8]))
    other = infer_bound(TASK.dag, init.split("C", "j", [8]).split("C", "i", [4]))
    assert one.transform_steps != other.transform_steps
    replayed = ReplayMeasurer([record_of(TASK, one, worked(0.5))])
    assert replayed.measure(TASK, [other]) == [worked(0.5)]
    assert replayed.measure(TASK, [other.split("C", "k", [2])])[0].error is MeasureError.UNKNOWN


def test_records_of_other_tasks_and_layouts_are_no_answers() -> None:
    packed = replace(TASK, layout_rewrite_option=LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED)
    records = [
        record_of(packed, STATES[0], worked(0.5)),
        record_of(task_of(matmul(8, 8, 8)), STATES[1], worked(0.5)),
    ]
    found = ReplayMeasurer(records).measure(TASK, STATES[:2])
    assert [each.error for each in found] == [MeasureError.UNKNOWN] * 2
    assert ReplayMeasurer(records).measure(packed, STATES[:1]) == [worked(0.5)]
