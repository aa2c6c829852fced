"""Logs of schedules lose at most the record that was being written, wherever their writer was killed."""

import json
import tempfile
from math import inf
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.native_workloads import matmul
from tests.searched_programs import task_of

from intarsia.autoschedule.measuring import (
    RecordToFile,
    calc_workload_dis_factor,
    load_records,
    measurement_of,
    read_record_file,
    record_of,
)
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import record_from_line, record_to_line

TASK = task_of(matmul(16, 16, 16))
STATES = [LoopState.initial(TASK.dag).split("C", "i", [length]) for length in (1, 2, 4, 8, 16)]

seconds = st.floats(1e-9, 1e6)
worked = st.builds(
    MeasureResult,
    st.lists(seconds, min_size=1, max_size=8).map(tuple),
    st.just(MeasureError.OK),
    wall_seconds=seconds,
    timestamp=st.integers(0, 2**40).map(float),
)


@given(worked)
def test_costs_come_back_to_the_last_bit(measured: MeasureResult) -> None:
    line = record_to_line(record_of(TASK, STATES[0], measured))
    assert measurement_of(record_from_line(line)) == measured


@given(st.sampled_from([error for error in MeasureError if error is not MeasureError.OK]), seconds)
def test_failures_come_back_without_costs(error: MeasureError, run_seconds: float) -> None:
    line = record_to_line(record_of(TASK, STATES[0], MeasureResult((), error, "why", run_seconds)))
    found = measurement_of(record_from_line(line))
    assert (found.costs, found.cost, found.is_ok) == ((), inf, False)


@settings(deadline=None)
@given(st.data())
def test_a_kill_at_any_byte_loses_one_record_at_most(data: st.DataObject) -> None:
    measured = [MeasureResult((0.5 + place,), MeasureError.OK) for place in range(len(STATES))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.json"
        RecordToFile(path)(TASK, STATES, measured)
        whole = path.read_bytes()
        written = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:written])
        kept = whole[:written].count(b"\n")
        found = read_record_file(path)
        assert len(found.records) in (kept, kept + 1)
        assert bool(found.torn) == (
            len(found.records) == kept and not whole[:written].endswith(b"\n") and written > 0
        )
        RecordToFile(path)(TASK, STATES[:1], measured[:1])
        again = load_records(path)
        assert again[:-1] == found.records
        assert again[-1].steps == STATES[0].transform_steps


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=5), st.booleans())
def test_a_multiple_is_as_far_as_its_quotients(pairs: list[tuple[int, int]], nested: bool) -> None:
    known, wanted = [size for size, _ in pairs], [size * times for size, times in pairs]
    expected = 1
    for _, times in pairs:
        expected *= times
    keys = [json.dumps(["dense", *([sizes] if nested else sizes)]) for sizes in (wanted, known)]
    assert calc_workload_dis_factor(*keys) == expected
    assert calc_workload_dis_factor(*reversed(keys)) == (1 if expected == 1 else inf)
