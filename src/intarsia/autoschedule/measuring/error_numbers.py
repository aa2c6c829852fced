"""Translate measurement errors to numbers of the v0.6 log, and back."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from intarsia.measure.measure_result import MeasureError

UNKNOWN_NUMBER: Final = 8
"""Number of errors for which the log has no number."""

_NUMBERS: Final = MappingProxyType(
    {
        MeasureError.OK: 0,
        MeasureError.INSTANTIATION: 1,
        MeasureError.COMPILE: 2,
        MeasureError.LOAD: 3,
        MeasureError.RUNTIME: 4,
        MeasureError.WRONG_ANSWER: 5,
        MeasureError.BUILD_TIMEOUT: 6,
        MeasureError.RUN_TIMEOUT: 7,
    }
)
_ERRORS: Final = MappingProxyType({number: error for error, number in _NUMBERS.items()})


def error_number(error: MeasureError) -> int:
    """Return the number of an error in the log; crashes and lack of memory are 8."""
    return _NUMBERS.get(error, UNKNOWN_NUMBER)


def error_of_number(number: int) -> MeasureError:
    """Return the error of a number in the log; UNKNOWN for 8 and for undefined numbers."""
    return _ERRORS.get(number, MeasureError.UNKNOWN)
