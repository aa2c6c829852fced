"""What is to be measured has keys that are equal wherever it is made."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.ir_programs import relu, var

from intarsia.ir import Function, IRModule, structural_digest
from intarsia.measure.measure_input import Candidate, PlainData, Workload
from intarsia.measure.measure_result import MeasureError, MeasureResult


def program(name: str = "x") -> IRModule:
    x = var(name)
    return IRModule.from_expr(Function((x,), relu(x)))


def test_equal_programs_are_one_workload() -> None:
    assert Workload(program()).digest == Workload(program("other"), name="other").digest
    # Verdicts of the laxer check, whose key was the digest of the program alone, are not found.
    assert Workload(program()).digest != structural_digest(program())


def test_special_inputs_make_another_workload() -> None:
    data = np.zeros((2, 3), np.float32)
    digests = {
        Workload(program(), special_inputs=inputs).digest
        for inputs in (
            {},
            {"x": data},
            {"y": data},
            {"x": data + 1},
            {"x": data.astype(np.float64)},
            {"x": data.T},
        )
    }
    assert len(digests) == 6
    assert Workload(program(), special_inputs={"x": data.copy()}).digest in digests


@pytest.mark.parametrize("trace", [None, True, 3, 0.5, "tile", [1, [2]], {"b": 1, "a": [None]}])
def test_a_trace_has_one_text(trace: PlainData) -> None:
    left, right = Candidate("schedule", trace), Candidate("schedule", trace)
    assert left.text == right.text
    assert left.digest == right.digest != Candidate("whole", trace).digest


def test_the_order_of_a_dict_does_not_matter() -> None:
    assert Candidate("a", {"x": 1, "y": 2}).digest == Candidate("a", {"y": 2, "x": 1}).digest
    assert Candidate("a", {"x": 1}).digest != Candidate("a", {"x": 2}).digest


def test_a_trace_holds_what_json_holds() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        assert Candidate("a", math.nan).text


def test_the_cost_is_the_median_and_infinite_for_a_failure() -> None:
    assert MeasureResult((3.0, 1.0, 2.0), MeasureError.OK, "", 1.0, 0.0).cost == 2.0
    assert MeasureResult((), MeasureError.CRASH, "signal 11", 1.0, 0.0).cost == math.inf
