"""Records as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from tests.measure_records import failed, record, worked

from intarsia.measure.database.record import Measurement
from intarsia.measure.database.rows import plain_record, read_record
from intarsia.measure.judge.gate_report import InputSetError
from intarsia.measure.measure_result import MeasureError

ERRORS = (
    InputSetError("ordinary", "right", "y", 1.25e-6, 0.5),
    InputSetError("large", "wrong", "", math.inf, math.inf),
)


def test_errors_by_inputs_are_kept_in_json() -> None:
    wrong = failed(MeasureError.WRONG_ANSWER).result
    plain = json.loads(json.dumps(plain_record(record("c", Measurement(replace(wrong, errors=ERRORS))))))
    assert read_record(plain).result.errors == ERRORS


def test_measurements_without_errors_are_written_as_before() -> None:
    (measurement,) = json.loads(json.dumps(plain_record(record("c", worked(0.5)))))["measurements"]
    assert "errors" not in measurement


@pytest.mark.parametrize(
    "errors", ["ordinary", [1], [["ordinary", "right", "y", 0.5]], [["ordinary", "right", 3, 0.5, 0.5]]]
)
def test_damaged_errors_are_refused(errors: object) -> None:
    plain = json.loads(json.dumps(plain_record(record("c", worked(0.5)))))
    plain["measurements"][0]["errors"] = errors
    with pytest.raises(ValueError, match=r"error|output|text"):
        read_record(plain)
