from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike
from tests.each_case import each_case

from intarsia.measure.judge.compare_outputs import compare
from intarsia.measure.judge.difference import Array
from intarsia.measure.judge.gate_report import GateReport, WorstElement
from intarsia.measure.judge.tolerance import EXACT, Tolerance

LOOSE = Tolerance(atol=1e-4)


def judge(
    actual: object, expected: object, tolerance: Tolerance = LOOSE, dtype: DTypeLike = np.float32
) -> GateReport:
    return compare([array(actual, dtype)], [array(expected, dtype)], ["y"], [tolerance])


def array(values: object, dtype: DTypeLike) -> Array:
    made: Array = np.array(values, dtype=dtype)
    return made


def test_the_message_names_the_worst_element() -> None:
    expected = np.full((1, 20), 0.29, np.float32)
    actual = expected.copy()
    actual[0, 17] = 0.31
    report = compare([actual], [expected], ["prob"], [LOOSE])
    assert report.message == 'output "prob"[0, 17] is 0.31, expected 0.29 (allowed difference 0.0001)'
    assert not report.passed
    assert report.max_abs_error == pytest.approx(0.02, rel=1e-5)
    assert report.max_rel_error == pytest.approx(0.02 / 0.29, rel=1e-5)
    assert report.worst == WorstElement(
        "prob", (0, 17), float(np.float32(0.31)), float(np.float32(0.29)), 1e-4
    )


def test_the_worst_of_several_outputs() -> None:
    actual = [array([1.001], np.float32), array([50, 3], np.int32), array([2.5], np.float32)]
    expected = [array([1.0], np.float32), array([50, 3], np.int32), array([2.0], np.float32)]
    report = compare(actual, expected, ["a", "b", "c"], [LOOSE, EXACT, Tolerance(atol=0.4)])
    assert report.message == 'output "a"[0] is 1.001, expected 1 (allowed difference 0.0001)'
    assert (report.max_abs_error, report.max_rel_error) == (0.5, 0.25)


def test_within_tolerance() -> None:
    report = judge([1.00005, 2.0], [1.0, 2.0])
    assert report.passed
    assert report.message == (
        "every output is within tolerance; nearest to its limit: "
        'output "y"[0] is 1.00005, expected 1 (allowed difference 0.0001)'
    )
    assert report.max_abs_error == pytest.approx(5e-5, rel=1e-2)
    assert report.max_rel_error == pytest.approx(2.5e-5, rel=1e-2)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (4, 5)])
def test_equal_outputs(shape: tuple[int, ...]) -> None:
    outputs = [np.ones(shape, np.float32)]
    report = compare(outputs, [outputs[0].copy()], ["y"], [EXACT])
    assert report == GateReport(True, 0.0, 0.0, None, "every output equals the reference")


def test_no_outputs() -> None:
    assert compare([], [], [], []).passed


MESSAGES = [
    # A scalar output has no index.
    (0.31, 0.29, LOOSE, np.float32, 'output "y" is 0.31, expected 0.29 (allowed difference 0.0001)'),
    # As many digits as it takes to tell the values apart.
    ([1.0000001], [1.0], EXACT, np.float32, 'output "y"[0] is 1.00000012, expected 1'),
    ([1 + 2**-52], [1.0], EXACT, np.float64, 'output "y"[0] is 1.0000000000000002, expected 1'),
    ([2e-12], [1e-12], Tolerance(1e-6), np.float64,
     'output "y"[0] is 2e-12, expected 1e-12 (allowed difference 1e-18)'),
    ([2e9], [1e-9], LOOSE, np.float64, 'output "y"[0] is 2e+9, expected 1e-9 (allowed difference 0.0001)'),
    ([1.0, math.nan], [1.0, 2.0], LOOSE, np.float32, 'output "y"[1] is nan, expected 2'),
    ([1.0, 2.0], [1.0, math.nan], LOOSE, np.float32, 'output "y"[1] is 2, expected nan'),
    ([math.inf], [-math.inf], LOOSE, np.float32, 'output "y"[0] is inf, expected -inf'),
    ([math.inf], [3e38], LOOSE, np.float32, 'output "y"[0] is inf, expected 3e+38'),
    ([3], [4], EXACT, np.int64, 'output "y"[0] is 3, expected 4'),
    ([3], [5], Tolerance(atol=1.0), np.uint8, 'output "y"[0] is 3, expected 5 (allowed difference 1)'),
    ([3], [5], Tolerance(atol=1.0), ml_dtypes.int4, 'output "y"[0] is 3, expected 5 (allowed difference 1)'),
    ([2**63 - 1], [2**63 - 2], EXACT, np.int64,
     'output "y"[0] is 9223372036854775807, expected 9223372036854775806'),
    ([True], [False], EXACT, np.bool_, 'output "y"[0] is True, expected False'),
    ([[1 + 2j]], [[1 + 3j]], LOOSE, np.complex64,
     'output "y"[0, 0] is 1+2j, expected 1+3j (allowed difference 0.0001)'),
    ([0.5], [0.25], LOOSE, ml_dtypes.bfloat16,
     'output "y"[0] is 0.5, expected 0.25 (allowed difference 0.0001)'),
    ([0.5], [0.25], LOOSE, ml_dtypes.float8_e4m3fn,
     'output "y"[0] is 0.5, expected 0.25 (allowed difference 0.0001)'),
    (["cat"], ["dog"], EXACT, object, "output \"y\"[0] is 'cat', expected 'dog'"),
    (["cat"], ["cats"], EXACT, "U9", "output \"y\"[0] is 'cat', expected 'cats'"),
]  # fmt: skip


@each_case(("actual", "expected", "tolerance", "dtype", "message"), MESSAGES)
def test_messages(
    actual: object, expected: object, tolerance: Tolerance, dtype: DTypeLike, message: str
) -> None:
    report = judge(actual, expected, tolerance, dtype)
    assert report.message == message
    assert not report.passed


def test_a_missing_output() -> None:
    y = np.ones(2, np.float32)
    report = compare([y], [y, y, y], ["a", "b", "c"], [EXACT] * 3)
    assert report == GateReport(False, math.inf, math.inf, None, "the result has 1 output, expected 3")
    assert compare([y, y], [y], ["a"], [EXACT]).message == "the result has 2 outputs, expected 1"


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (np.zeros((1, 10)), np.zeros((1, 1000)), 'output "y" has shape (1, 10), expected (1, 1000)'),
        (np.zeros(1), np.zeros(()), 'output "y" has shape (1,), expected ()'),
        (np.zeros((0, 3)), np.zeros((3, 0)), 'output "y" has shape (0, 3), expected (3, 0)'),
        (np.zeros(1), np.zeros(1, np.float32), 'output "y" has element type float64, expected float32'),
        (np.zeros(1, np.uint8), np.zeros(1, bool), 'output "y" has element type uint8, expected bool'),
        (
            np.zeros(1, ml_dtypes.float8_e5m2),
            np.zeros(1, ml_dtypes.float8_e4m3fn),
            'output "y" has element type float8_e5m2, expected float8_e4m3fn',
        ),
    ],
)
def test_shapes_and_types_that_do_not_match(actual: Array, expected: Array, message: str) -> None:
    report = compare([actual], [expected], ["y"], [Tolerance(1.0, 1.0, 1.0)])
    assert report == GateReport(False, math.inf, math.inf, None, message)


def test_one_mismatch_outweighs_right_outputs() -> None:
    y = np.ones(2, np.float32)
    report = compare([y, y[:1]], [y, y], ["a", "b"], [EXACT] * 2)
    assert report.message == 'output "b" has shape (1,), expected (2,)'


def test_the_representation_of_texts_and_numbers_does_not_matter() -> None:
    texts, numbers = np.array(["a", "bcd"]), np.array([1.5, 2.5], ">f4")
    report = compare([texts.astype(object), numbers], [texts, numbers.astype("<f4")], ["t", "n"], [EXACT] * 2)
    assert report.passed


def test_arrays_that_are_not_contiguous() -> None:
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    changed = grid.copy()
    changed[2, 1] = 100
    report = compare([changed.T], [grid.T], ["y"], [LOOSE])
    assert report.message == 'output "y"[1, 2] is 100, expected 9 (allowed difference 0.0001)'


def test_names_and_tolerances_must_be_those_of_the_expected_outputs() -> None:
    with pytest.raises(ValueError, match=r"^1 outputs, 0 names and 1 tolerances$"):
        compare([np.ones(1)], [np.ones(1)], [], [EXACT])
