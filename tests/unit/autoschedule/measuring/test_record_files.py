"""Measurements as lines of the v0.6 log, and logs whose writer was killed."""

import json
from math import inf
from pathlib import Path

import pytest
from tests.native_workloads import matmul
from tests.searched_programs import task_of

from intarsia.autoschedule.measuring import (
    RecordToFile,
    load_records,
    measurement_of,
    read_record_file,
    record_of,
    save_records,
)
from intarsia.autoschedule.measuring.error_numbers import error_number, error_of_number
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import record_to_line
from intarsia.native.loop_state.steps import STEPS
from intarsia.native.lowering import infer_bound
from intarsia.support.errors import DatabaseError, OutputError

TASK = task_of(matmul(16, 16, 16))
INIT = LoopState.initial(TASK.dag)
WORKED = MeasureResult((0.25, 0.5, 0.125), MeasureError.OK, "", 0.75, 1600000000.75)
TVM_LINES = (
    "# written by auto_scheduler",
    r'{"i": [["[\"matmul\", 16, 16, 16]", "llvm -keys=cpu -mcpu=skylake-avx512", [4, 64, 64, 0, 0, 0, 0, 0], '
    r'"", 1, []], [[], [["SP", 2, 0, 16, [4, 2, 1], 1], ["SP", 2, 4, 16, [2, 2, 2], 1], '
    r'["RE", 2, [0, 4, 1, 5, 2, 6, 8, 3, 7]], ["AN", 2, 8, 2]]]], '
    r'"r": [[0.000127], 0, 0.341, 1604489452], "v": "v0.6"}',
    r'{"i": [["[\"matmul\", 16, 16, 16]", "llvm"], [[], []]], '
    r'"r": [[1e+10], 2, 15.2, 1604489453], "v": "v0.2"}',
)
"""As that project writes them: with hardware and options, and with neither."""


def every_kind_of_step() -> list[LoopState]:
    """States in whose histories each kind of step occurs."""
    tiled = INIT.split("C", "i", [4, 2]).split("C", "j", [2, 4], inner_to_outer=False)
    tiled = tiled.reorder("C", ["i.0", "j.0", "k", "i.1", "i.2", "j.1", "j.2"])
    tiled = tiled.fuse("C", ["i.0", "j.0"]).parallel("C", 0).pragma("C", 0, "auto_unroll_max_step$16")
    written = INIT.cache_write("C", "local").split("C.local", 0, [4, 2])
    written = written.follow_split("C", "i", 1, 1).follow_fused_split("C", "j", [1], 0, True)
    written = written.compute_at("C.local", "C", 2)
    read = INIT.cache_read("A", "local", ["C"]).storage_align("A.local", 0, 4, 1)
    split = INIT.split("C", "k", [4])
    return [
        *(tiled, written, read, read.compute_inline("A.local"), read.compute_root("A.local")),
        split.rfactor("C", "k.0", 0),
    ]


def test_every_kind_of_step_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    states = every_kind_of_step()
    codes = {step.code for state in states for step in state.transform_steps}
    assert codes == set(STEPS)
    RecordToFile(path)(TASK, states, [WORKED] * len(states))
    found = load_records(path)
    again = [LoopState.replay(TASK.dag, record.steps) for record in found]
    assert again == states
    assert [infer_bound(TASK.dag, each) for each in again] == [infer_bound(TASK.dag, each) for each in states]
    assert infer_bound(TASK.dag, again[0]) != infer_bound(TASK.dag, INIT)


def test_measurements_come_back_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    failed = MeasureResult((), MeasureError.RUN_TIMEOUT, "it hung", 10.5, 1600000001.0)
    states = [INIT, INIT.split("C", "i", [4])]
    write = RecordToFile(path)
    write(TASK, states[:1], [WORKED])
    write(TASK, states[1:], [failed])
    first, second = load_records(path)
    assert first.task == TASK.record_task
    assert [each.steps for each in (first, second)] == [each.transform_steps for each in states]
    assert measurement_of(first) == MeasureResult(
        WORKED.costs, MeasureError.OK, wall_seconds=0.75, timestamp=1600000000.0
    )
    assert measurement_of(second) == MeasureResult(
        (), MeasureError.RUN_TIMEOUT, wall_seconds=10.5, timestamp=1600000001.0
    )
    assert measurement_of(second).cost == inf
    assert json.loads(path.read_text().splitlines()[1])["r"] == [[1e10], 7, 10.5, 1600000001]


@pytest.mark.parametrize("error", list(MeasureError), ids=lambda error: error.name)
def test_errors_have_the_numbers_of_the_field(error: MeasureError) -> None:
    names = (
        "OK",
        "INSTANTIATION",
        "COMPILE",
        "LOAD",
        "RUNTIME",
        "WRONG_ANSWER",
        "BUILD_TIMEOUT",
        "RUN_TIMEOUT",
    )
    assert error_number(error) == (names.index(error.name) if error.name in names else 8)
    assert error_of_number(error_number(error)) is (error if error.name in names else MeasureError.UNKNOWN)


def test_the_log_of_tvm_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tvm.json"
    path.write_text("\n".join(TVM_LINES))
    first, second = load_records(path)
    assert measurement_of(first).costs == (0.000127,)
    assert measurement_of(second).error is MeasureError.COMPILE
    assert measurement_of(second).costs == ()
    state = infer_bound(TASK.dag, LoopState.replay(TASK.dag, first.steps))
    assert [loop.extent for loop in state["C"].iters] == [2, 2, 4, 2, 2, 2, 16, 1, 2]


def test_a_torn_last_line_is_passed_over_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    line = record_to_line(record_of(TASK, INIT, WORKED))
    path.write_text(f"{line}\n{line}\n{line[:70]}")
    found = read_record_file(path)
    assert len(found.records) == 2
    assert found.torn == line[:70]
    assert len(load_records(path)) == 2


def test_a_torn_last_line_is_removed_before_the_next_record(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    line = record_to_line(record_of(TASK, INIT, WORKED))
    path.write_text(f"{line}\n{line[:70]}")
    torn: list[str] = []
    write = RecordToFile(path, torn.append)
    write(TASK, [INIT], [WORKED])
    write(TASK, [INIT], [WORKED])
    assert torn == [line[:70]]
    assert path.read_text() == f"{line}\n" * 3
    assert read_record_file(path).torn == ""


@pytest.mark.parametrize("end", ["", "\n"], ids=["without line break", "with line break"])
def test_whole_files_are_appended_to(tmp_path: Path, end: str) -> None:
    path = tmp_path / "log.json"
    line = record_to_line(record_of(TASK, INIT, WORKED))
    path.write_text(f"# mine\n{line}{end}")
    save_records(path, [record_of(TASK, INIT, WORKED)])
    assert path.read_text() == f"# mine\n{line}\n{line}\n"


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    line = record_to_line(record_of(TASK, INIT, WORKED))
    path.write_text(f"{line}\n{line[:50]}\n{line}\n")
    with pytest.raises(DatabaseError) as caught:
        load_records(path)
    assert f"in line 2 of {path}" in str(caught.value.__notes__)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="no such file"):
        load_records(tmp_path / "log.json")
    with pytest.raises(OutputError, match="no such file"):
        RecordToFile(tmp_path / "folder" / "log.json")(TASK, [INIT], [WORKED])
    with pytest.raises(OutputError, match="no such file"):
        save_records(tmp_path / "folder" / "log.json", [])
