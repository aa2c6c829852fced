"""The errors of all candidates for a model, a column for each input set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.report.explanation import ContestRecord, Explanation
from intarsia.report.run_records import InputSetDeviation
from intarsia.support.units import NOTHING, error_text

_RIGHT: Final = "right"


@dataclass(frozen=True, slots=True)
class ErrorCell:
    """The error of a candidate on one input set.

    Attributes:
        inputs: Name of the input set.
        text: Error relative to the largest expected value, and its share of the allowed one.
        output: Name of the output with the worst element; "" if there is none.
        is_bad: Whether the result is not right.
    """

    inputs: str
    text: str
    output: str
    is_bad: bool


@dataclass(frozen=True, slots=True)
class ErrorTable:
    """Errors of candidates by input set.

    Attributes:
        inputs: Names of the input sets.
        rows: Candidates that were checked, each with a cell for each input set.
    """

    inputs: tuple[str, ...]
    rows: tuple[tuple[ContestRecord, tuple[ErrorCell, ...]], ...]


_MOST_PERCENT: Final = 10
"""Multiple of the allowed error from which on it is written as a multiple."""

_LEAST_PERCENT: Final = 0.1
"""Percent of the allowed error below which smaller numbers mean nothing."""


def errors_by_inputs(explanation: Explanation) -> ErrorTable | None:
    """Return the errors of all candidates that were checked; None if no error by input set is recorded."""
    checked = [record for record in explanation.contest if record.errors]
    if not checked:
        return None
    inputs = tuple(dict.fromkeys(error.inputs for record in checked for error in record.errors))
    return ErrorTable(inputs, tuple((record, _cells(record, inputs)) for record in checked))


def _cells(record: ContestRecord, inputs: tuple[str, ...]) -> tuple[ErrorCell, ...]:
    by_inputs = {error.inputs: _cell(error) for error in record.errors}
    return tuple(by_inputs.get(name) or ErrorCell(name, NOTHING, "", is_bad=False) for name in inputs)


def _cell(error: InputSetDeviation) -> ErrorCell:
    parts = [] if error.verdict == _RIGHT else [error.verdict]
    if error.max_rel is not None:
        parts.append(error_text(error.max_rel))
    if error.excess is not None:
        parts.append(f"({_share(error.excess)})")
    return ErrorCell(error.inputs, " ".join(parts), error.output, is_bad=error.verdict != _RIGHT)


def _share(excess: float) -> str:
    if excess >= _MOST_PERCENT:
        return f"{excess:.4g} times"
    percent = 100 * excess
    return f"{percent:.2g} %" if percent == 0 or percent >= _LEAST_PERCENT else f"under {_LEAST_PERCENT} %"
