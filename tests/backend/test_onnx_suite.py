"""ONNX's backend tests through import, export and every toolchain (issue: what it must show, 3)."""

from __future__ import annotations

import re
import unittest
from collections import Counter
from collections.abc import Iterable

import onnx.backend.test
import pytest
from tests.backend.result import Report
from tests.backend.verdict import Column, Outcome, Verdict

from intarsia.onnx_backend import IntarsiaBackend

pytestmark = pytest.mark.backend

OURS = tuple(column for column in Column if column is not Column.ONNX)
DEPENDABLE = (Column.ROUND_TRIP, Column.REFERENCE, Column.AUTO)
"""Columns that answer for what they do; a single engine may be wrong, which the table shows."""

LEAST_PASSED_BY_AUTO = 2005
"""Of 2,024 tests. Of the others onnx's own evaluator computes 11 wrong, and 5 fail in it."""

NOT_IMPORTED = {"input 'initial'": 1}
"""Gap: what the import refuses, and the tests this costs: a Scan of opset 8, which had a batch axis."""

NO_IMPLEMENTATION = {"Gradient": 2}
"""Gap: operators that no toolchain has, and the tests this costs."""

COMPUTED_WRONG = {"LSTM": 1}
"""Gap of onnx.reference: what the reference toolchain refuses, because the evaluator ignores lengths of
sequences, and the tests this costs (there, all have the full length, but only at run time)."""

WIDER_TYPES = {
    "BitShift": 20,
    "Celu": 2,
    "Compress": 1,
    "Einsum": 3,
    "OneHot": 1,
    "Range": 2,
    "ReverseSequence": 1,
    "Unique": 1,
}
"""Gap: operators that take more element types since the pinned opset, at which such a model is exported; only
the strict check sees it."""

INVALID_BY_ITSELF = {"MeanVarianceNormalization": 1}
"""Gap of onnx: the strict check refuses the definition of the operator in the original model, too."""


def test_the_measure_is_sound(report: Report) -> None:
    """Else a harness that runs nothing would find nothing wrong."""
    assert len(report.cases) >= 2024
    assert len(report.right_by_onnx) >= 0.95 * len(report.cases)


def test_auto_passes_nearly_all(report: Report) -> None:
    assert len(report.having(Column.AUTO, Outcome.PASSED)) >= LEAST_PASSED_BY_AUTO


@pytest.mark.parametrize("column", OURS)
def test_every_case_has_a_verdict(report: Report, column: Column) -> None:
    if column not in report.columns:
        pytest.skip(f"the toolchain {column} is not usable here")
    assert len(report.having(column)) == len(report.cases)


@pytest.mark.parametrize("column", OURS)
def test_no_foreign_exception_escapes(report: Report, column: Column) -> None:
    escaped = [f"{item.case}\n{item.traceback}" for item in report.having(column) if item.traceback]
    assert not escaped, "\n".join(escaped)


def test_import_and_reference_pass_what_onnx_passes(report: Report) -> None:
    passed = {item.case for item in report.having(Column.REFERENCE, Outcome.PASSED)}
    assert len(passed & report.right_by_onnx) >= 0.98 * len(report.right_by_onnx)


@pytest.mark.parametrize("column", DEPENDABLE)
def test_nothing_is_wrong_that_onnx_passes(report: Report, column: Column) -> None:
    assert not _texts(report.wrong(column))


@pytest.mark.parametrize("column", DEPENDABLE)
def test_nothing_fails_that_onnx_passes(report: Report, column: Column) -> None:
    failed = report.having(column, Outcome.FAILED)
    assert not _texts(item for item in failed if item.case in report.right_by_onnx)


@pytest.mark.parametrize("column", DEPENDABLE)
def test_nothing_dies(report: Report, column: Column) -> None:
    assert not _texts(report.having(column, Outcome.CRASHED, Outcome.HUNG))


@pytest.mark.parametrize(
    ("column", "gaps"),
    [
        (Column.ROUND_TRIP, NOT_IMPORTED),
        (Column.REFERENCE, NOT_IMPORTED | NO_IMPLEMENTATION | COMPUTED_WRONG),
        (Column.AUTO, NOT_IMPORTED | NO_IMPLEMENTATION),
    ],
)
def test_what_is_unsupported_is_known(report: Report, column: Column, gaps: dict[str, int]) -> None:
    reasons = [item.reason for item in report.having(column, Outcome.UNSUPPORTED)]
    assert Counter(_named(gaps, reason) for reason in reasons) == gaps


def test_exported_models_are_valid_to_the_letter(report: Report) -> None:
    """Every export passes onnx's checker; its strict check is passed with known exceptions."""
    gaps = WIDER_TYPES | INVALID_BY_ITSELF
    notes = [item.reason for item in report.having(Column.ROUND_TRIP, Outcome.PASSED) if item.reason]
    assert Counter(_named(gaps, note) for note in notes) == gaps


def test_onnx_own_runner_drives_the_backend() -> None:
    runner = onnx.backend.test.BackendTest(IntarsiaBackend, __name__)
    result = unittest.TestResult()
    runner.include(r"^test_(relu|gemm|if_cpu|if_seq)").test_suite.run(result)
    assert result.wasSuccessful(), [text for _, text in [*result.errors, *result.failures]]
    assert result.testsRun > len(result.skipped) > 0


def _texts(verdicts: Iterable[Verdict]) -> list[str]:
    return [f"{item.case}: {item.outcome}: {item.reason}" for item in verdicts]


def _named(names: Iterable[str], reason: str) -> str:
    """The name that a reason is about, else the reason."""
    return next((name for name in names if re.search(rf"\b{re.escape(name)}", reason)), reason)
