"""Records: what several measurements of the same say together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measure_records import HERE, TARGET, candidate, failed, record, worked
from tests.small_programs import doubling

from intarsia.ir import IRModule
from intarsia.measure.database import Hint, Measurement, MeasureRecord
from intarsia.measure.database.record import KEPT
from intarsia.measure.judge.gate_report import InputSetError
from intarsia.measure.measure_input import Candidate, MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.target import Target

measurements = st.builds(
    lambda costs, time, max_error: worked(*costs, timestamp=time, max_error=max_error),
    st.lists(st.sampled_from([0.5, 1.0, 2.0]), max_size=3),
    st.integers(0, 4),
    st.sampled_from([None, 0.0, math.inf, math.nan]),
) | st.builds(failed, st.sampled_from([MeasureError.CRASH, MeasureError.COMPILE]), st.integers(0, 4))
records = st.lists(measurements, min_size=1, max_size=12).map(lambda found: record("c", *found))


def test_repeats_of_several_measurements_are_pooled() -> None:
    lucky, later = worked(0.1, timestamp=1, max_error=1e-6), worked(0.5, 0.4, timestamp=2, max_error=1e-7)
    found = record("c", later, lucky)
    assert found.result == MeasureResult((0.1, 0.5, 0.4), MeasureError.OK, "", 3.0, 2, 1e-6)
    assert (found.cost, found.max_error, found.timestamp) == (0.4, 1e-6, 2)


def test_errors_by_inputs_are_those_of_the_newest_check() -> None:
    errors = tuple(InputSetError("ordinary", "right", "y", size, 0.5) for size in (1e-6, 2e-6))
    results = [worked(0.1, timestamp=time).result for time in (1, 2)]
    checked = [
        Measurement(replace(result, errors=(error,))) for result, error in zip(results, errors, strict=True)
    ]
    assert (
        record("c", *checked, worked(0.2, timestamp=3)).result.errors == errors[1:]
    )  # a race checks nothing


def test_the_newest_verdict_counts() -> None:
    broken = record("c", worked(0.1, timestamp=1), failed(timestamp=2))
    assert broken.error is MeasureError.CRASH
    assert broken.cost == math.inf
    assert broken.result.costs == ()
    repaired = record("c", worked(0.1, timestamp=1), failed(timestamp=2), worked(0.3, timestamp=3))
    assert repaired.result.costs == (0.3,)  # what was measured before the failure was of something else


def test_of_two_at_the_same_time_the_failure_counts() -> None:
    for kind in MeasureError:
        if kind is not MeasureError.OK:
            assert record("c", failed(kind, 5), worked(0.1, timestamp=5)).error is kind


def test_old_measurements_are_forgotten() -> None:
    found = record("c", *(worked(float(i), timestamp=i) for i in range(KEPT + 5)))
    assert [each.result.timestamp for each in found.measurements] == list(range(5, KEPT + 5))


@given(records, records, records)
def test_combining_is_a_union(a: MeasureRecord, b: MeasureRecord, c: MeasureRecord) -> None:
    assert a.combined(b) == b.combined(a)
    assert a.combined(b).combined(c) == a.combined(b.combined(c))
    assert a.combined(a) is a
    both = a.combined(b)
    assert both.combined(b) is both


def test_records_of_different_things_are_not_combined() -> None:
    with pytest.raises(ValueError, match="different things"):
        record("c").combined(record("d"))


def test_a_record_of_a_measured_input() -> None:
    workload = Workload(IRModule.from_expr(doubling()), "doubling")
    measured = MeasureInput(workload, Target(TARGET), candidate({"b": 1, "a": [2.5, None]}))
    result = MeasureResult((0.25,), MeasureError.OK, "", 1.0, 7.0, np.float64(0.5))
    found = MeasureRecord.of(measured, HERE, result)
    assert (found.workload, found.target, found.host) == (workload.digest, TARGET, HERE)
    assert found.trace == '{"a":[2.5,null],"b":1}'
    assert found.candidate_digest == measured.candidate.digest == found.candidate.digest
    assert found.result == result
    assert found.key != record("c").key


def test_a_hint_has_no_cost() -> None:
    hint = Hint("host", "schedule", '["split",4]', 1)
    assert not {"cost", "costs", "result", "measurements"} & set(dir(hint))
    assert isinstance(hint.candidate, Candidate)
    assert hint.candidate.trace == ["split", 4]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (MeasureResult((math.nan,), MeasureError.OK, "", 1, 1), "finite and not negative"),
        (MeasureResult((-1.0,), MeasureError.OK, "", 1, 1), "finite and not negative"),
        (MeasureResult((math.inf,), MeasureError.OK, "", 1, 1), "finite and not negative"),
        (MeasureResult((), MeasureError.OK, "", -1, 1), "finite and not negative"),
        (MeasureResult((), MeasureError.OK, "", 1, math.inf), "time of measuring is finite"),
        (MeasureResult((1.0,), MeasureError.CRASH, "", 1, 1), "a failure has no costs"),
    ],
)
def test_a_measurement_that_cannot_be(result: MeasureResult, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Measurement(result)


@pytest.mark.parametrize("workload", ["", "a\0b", "\ud800"])
def test_texts_that_a_database_cannot_hold(workload: str) -> None:
    with pytest.raises(ValueError, match=r"no NUL|surrogates"):
        record("c", workload=workload)


def test_a_record_without_measurements() -> None:
    with pytest.raises(ValueError, match="at least one"):
        MeasureRecord("w", TARGET, HERE, "schedule", "1", ())
