"""Reports of checks of a candidate's outputs, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.measure.element_kind import ElementKind, element_kind

Array: TypeAlias = npt.NDArray[Any]
Scalar: TypeAlias = bool | int | float | complex | str


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element that uses up the largest part of its allowed difference.

    Attributes:
        output: Name of the output.
        index: Position in the output.
        actual: Value of the candidate.
        expected: Value of the reference.
        allowed: Allowed difference; for a complex number, of its real and of its imaginary part.
    """

    output: str
    index: tuple[int, ...]
    actual: Scalar
    expected: Scalar
    allowed: float

    @classmethod
    def of(cls, output: str, position: int, actual: Array, expected: Array, allowed: float) -> WorstElement:
        """Return the element at a position of the flattened arrays."""
        index = tuple(int(i) for i in np.unravel_index(position, expected.shape))
        return cls(output, index, _scalar(actual, index), _scalar(expected, index), allowed)

    def __str__(self) -> str:
        """Return one sentence without a full stop: the element, its value, and the expected value."""
        index = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        actual, expected = _distinct_texts(self.actual, self.expected)
        values = f'output "{self.output}"{index} is {actual}, expected {expected}'
        if self.allowed == 0 or not _is_finite(self.actual, self.expected):
            return values  # nothing but the same value is allowed
        return f"{values} (allowed difference {number_text(self.allowed, 2)})"


@dataclass(frozen=True, slots=True)
class InputSetError:
    """The error of a candidate on one input set, over all outputs.

    Attributes:
        inputs: Kind of the input set, with the sizes of symbolic dimensions if there are any.
        verdict: "right", "wrong" or "unproven".
        output: Name of the output with the worst element; "" if all are equal, or shapes differ.
        max_rel: Largest difference relative to the largest magnitude of the same expected output; infinite if
            shapes or types differ.
        excess: Largest error in units of the allowed one; above 1 is wrong.
    """

    inputs: str
    verdict: str
    output: str
    max_rel: float
    excess: float


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdict about the outputs of a candidate.

    Attributes:
        passed: Whether the outputs are right.
        max_abs_error: Largest difference over all outputs; infinite if shapes or types do not even match.
        max_rel_error: Largest difference relative to the largest magnitude of the same expected output.
        worst: Element nearest to its limit or furthest beyond; None if all are equal or shapes differ.
        message: Message for users: the worst error, or the margin.
        excess: Largest error in units of the allowed one, over all tests; above 1 is wrong.
        is_proven: Whether the expected result is proven. If not, outputs may be right although none pass.
        by_inputs: Errors on each input set, where the report is on several.
    """

    passed: bool
    max_abs_error: float
    max_rel_error: float
    worst: WorstElement | None
    message: str
    excess: float = field(default=0.0, compare=False)
    is_proven: bool = True
    by_inputs: tuple[InputSetError, ...] = field(default=(), compare=False)

    @property
    def verdict(self) -> str:
        """One word for tables: "right", "wrong" or "unproven"."""
        if not self.is_proven:
            return "unproven"
        return "right" if self.passed else "wrong"


EQUAL = "every output equals the reference"


def structure_report(message: str) -> GateReport:
    """Return the report of outputs with a wrong number, shape or element type."""
    return GateReport(False, math.inf, math.inf, None, message, math.inf)


def joined_report(reports: Sequence[GateReport]) -> GateReport:
    """Join the reports of several checks: the one with the largest excess has the message."""
    if not reports:
        return GateReport(True, 0.0, 0.0, None, EQUAL)
    worst = max(reports, key=lambda report: (not report.passed, report.excess, report.worst is not None))
    return replace(
        worst,
        max_abs_error=max(report.max_abs_error for report in reports),
        max_rel_error=max(report.max_rel_error for report in reports),
    )


def input_set_error(inputs: str, report: GateReport) -> InputSetError:
    """Return the error of a candidate on one input set from the report on it."""
    output = "" if report.worst is None else report.worst.output
    return InputSetError(inputs, report.verdict, output, report.max_rel_error, report.excess)


def structural_complaint(actual: Array, expected: Array) -> str:
    """Return the difference of shape or element type in words; "" if there is none."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    kinds = {element_kind(actual.dtype), element_kind(expected.dtype)}
    if kinds != {ElementKind.TEXT} and actual.dtype.name != expected.dtype.name:
        return f"element type {actual.dtype.name}, expected {expected.dtype.name}"
    return ""


def outputs_text(count: int) -> str:
    """Return a number of outputs in words."""
    return "1 output" if count == 1 else f"{count} outputs"


def number_text(value: complex, digits: int) -> str:
    """Return a number as text with a number of significant digits."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e+")


def _scalar(array: Array, index: tuple[int, ...]) -> Scalar:
    element = array[index]
    match element_kind(array.dtype):
        case ElementKind.FLOAT:
            return float(element)
        case ElementKind.COMPLEX:
            return complex(element)
        case ElementKind.INTEGER:
            return bool(element) if array.dtype.kind == "b" else int(element)
        case _:
            return str(element)


def _is_finite(*values: Scalar) -> bool:
    return all(isinstance(value, str) or math.isfinite(abs(value)) for value in values)


def _distinct_texts(actual: Scalar, expected: Scalar) -> tuple[str, str]:
    """Return both values with enough digits for the texts to differ, six at least."""
    if isinstance(actual, str) or isinstance(expected, str):
        return repr(actual), repr(expected)
    for digits in (6, 9, 12, 17):
        texts = number_text(actual, digits), number_text(expected, digits)
        if texts[0] != texts[1]:
            break
    return texts
