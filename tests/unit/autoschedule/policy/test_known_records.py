from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest
from tests.native_workloads import matmul
from tests.searched_programs import task_of

from intarsia.autoschedule.policy import hints, known_records
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import (
    Record,
    RecordResult,
    RecordTask,
    read_records,
    record_to_text,
)
from intarsia.native.loop_state.steps import SplitStep

TASK = task_of(matmul())
STATES = [LoopState.initial(TASK.dag).split("C", "i", [length]) for length in (2, 4, 8)]


def record(
    state: LoopState, costs: Sequence[float], error_no: int = 0, task: RecordTask = TASK.record_task
) -> Record:
    return Record(task, state.transform_steps, RecordResult(tuple(costs), error_no, 0.1, 0))


def found(*records: Record) -> list[tuple[str, float]]:
    again = read_records("".join(map(record_to_text, records)).splitlines())
    return [(known.state.text, known.cost) for known in known_records(TASK, again)]


def test_programs_come_with_the_median_of_their_costs() -> None:
    records = record(STATES[0], [3.0, 1.0, 8.0]), record(STATES[1], [], 4), record(STATES[2], [1e10], 4)
    assert found(*records) == [(STATES[0].text, 3.0), (STATES[1].text, inf), (STATES[2].text, inf)]


def test_ranges_are_known() -> None:
    ((text, _),) = found(record(STATES[0], [1.0]))
    assert "i.0 (0,4)" in text


def test_all_costs_since_the_last_confirmation_count() -> None:
    won = replace(record(STATES[0], [4.0]), is_confirmed=True)
    records = [record(STATES[0], [1.0]), record(STATES[0], [3.0]), won, record(STATES[0], [6.0])]
    assert [cost for _, cost in found(*records)] == [1.0, 2.0, 4.0, 5.0]


OTHERS = {
    "workload": replace(TASK.record_task, workload_key="another"),
    "cuda": replace(TASK.record_task, target="cuda"),
    "llvm": replace(TASK.record_task, target="llvm -mcpu=core-avx2"),
    "hardware": replace(TASK.record_task, hardware_params=(64, 64, 64, 0, 0, 0, 0, 0)),
    "layout": replace(TASK.record_task, layout_rewrite_option=2),
}


@pytest.mark.parametrize("name", OTHERS)
def test_records_of_other_tasks_are_passed_over(name: str) -> None:
    assert found(record(STATES[0], [1.0], task=OTHERS[name])) == []


def test_a_kind_of_target_is_enough() -> None:
    """Older logs do not say more."""
    long = replace(TASK.record_task, target="cpu -toolchain=native -threads=3", hardware_params=None)
    short = RecordTask(TASK.workload_key, "cpu")
    for task in (long, short):
        assert len(found(record(STATES[0], [1.0], task=task))) == 1


def test_histories_that_the_dag_does_not_allow_are_passed_over() -> None:
    bad = Record(TASK.record_task, (SplitStep(2, 7, 8, (2,)),), RecordResult((1.0,), 0, 0.1, 0))
    assert found(bad, record(STATES[0], [1.0])) == [(STATES[0].text, 1.0)]


def test_hints_are_the_best_programs_of_any_machine() -> None:
    far = replace(TASK.record_task, hardware_params=(64, 32, 64, 0, 0, 0, 0, 0), target="llvm")
    records = [
        record(STATES[0], [3.0]),
        record(STATES[1], [1.0], task=far),
        record(STATES[2], [2.0]),
        record(STATES[0], [0.5], 4),
        record(STATES[2], [0.1], task=OTHERS["workload"]),
        record(STATES[2], [5.0]),
    ]
    assert hints(TASK, records, 2) == (STATES[1], STATES[2])
    assert hints(TASK, records, 9) == (STATES[1], STATES[2], STATES[0])
    assert hints(TASK, records, 0) == ()
