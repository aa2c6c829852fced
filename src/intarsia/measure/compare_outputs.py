"""The numeric gate: whether the outputs of a candidate are those of the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from intarsia.measure.difference import Array, Difference, difference
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.tolerance import Tolerance

Scalar: TypeAlias = bool | int | float | complex | str


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element that uses up the largest part of its allowed difference.

    Attributes:
        output: Name of the output.
        index: Position in the output.
        actual: What the candidate computed.
        expected: What the reference computed.
        allowed: The allowed difference; for a complex number, of its real and of its imaginary part.
    """

    output: str
    index: tuple[int, ...]
    actual: Scalar
    expected: Scalar
    allowed: float

    def __str__(self) -> str:
        """One sentence without a full stop: which element, what it is, what was expected."""
        index = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        actual, expected = _distinct_texts(self.actual, self.expected)
        values = f'output "{self.output}"{index} is {actual}, expected {expected}'
        if self.allowed == 0 or not _is_finite(self.actual, self.expected):
            return values  # nothing but the same value is allowed
        return f"{values} (allowed difference {_number(self.allowed, 2)})"


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdict about the outputs of a candidate.

    Attributes:
        passed: Whether they are right.
        max_abs_error: Largest difference over all outputs; infinite if shapes or types do not even match.
        max_rel_error: Largest difference relative to the largest magnitude of the same expected output.
        worst: The element nearest to its limit or furthest beyond; None if all are equal or shapes differ.
        message: For people: what is wrong, or how right it is.
    """

    passed: bool
    max_abs_error: float
    max_rel_error: float
    worst: WorstElement | None
    message: str


def compare(
    actual: Sequence[Array], expected: Sequence[Array], names: Sequence[str], tolerances: Sequence[Tolerance]
) -> GateReport:
    """Judge the outputs of a candidate by those of the reference.

    NaN and infinities must be in the same places. Arrays are worked through in blocks: beside them almost no
    memory is used, unless an array is not contiguous.

    Args:
        actual: The outputs of the candidate.
        expected: The outputs of the reference.
        names: The names of the expected outputs, for messages.
        tolerances: For each expected output.

    Raises:
        ValueError: There are not as many names or tolerances as expected outputs.
    """
    if not len(expected) == len(names) == len(tolerances):
        raise ValueError(f"{len(expected)} outputs, {len(names)} names and {len(tolerances)} tolerances")
    if len(actual) != len(expected):
        return _mismatch(f"the result has {_outputs(len(actual))}, expected {len(expected)}")
    actual, expected = [np.asarray(a) for a in actual], [np.asarray(e) for e in expected]
    for a, e, name in zip(actual, expected, names, strict=True):
        if complaint := _structural_complaint(a, e):
            return _mismatch(f'output "{name}" has {complaint}')
    found = [difference(a, e, t) for a, e, t in zip(actual, expected, tolerances, strict=True)]
    return _report(found, actual, expected, names, tolerances)


def holds_only_nan(array: Array) -> bool:
    """Whether an array has elements, NaN among them, and no finite one."""
    if array.size == 0 or element_kind(array.dtype) not in {ElementKind.FLOAT, ElementKind.COMPLEX}:
        return False
    return not bool(np.isfinite(array).any()) and bool(np.isnan(array).any())


def _structural_complaint(actual: Array, expected: Array) -> str:
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    kinds = {element_kind(actual.dtype), element_kind(expected.dtype)}
    if kinds != {ElementKind.TEXT} and actual.dtype.name != expected.dtype.name:
        return f"element type {actual.dtype.name}, expected {expected.dtype.name}"
    return ""


def _mismatch(message: str) -> GateReport:
    return GateReport(False, math.inf, math.inf, None, message)


def _report(
    found: Sequence[Difference],
    actual: Sequence[Array],
    expected: Sequence[Array],
    names: Sequence[str],
    tolerances: Sequence[Tolerance],
) -> GateReport:
    max_abs = max((one.max_abs for one in found), default=0.0)
    max_rel = max((one.max_rel for one in found), default=0.0)
    number = max(range(len(found)), key=lambda i: found[i].excess, default=0)
    if not found or found[number].position is None:
        return GateReport(True, max_abs, max_rel, None, "every output equals the reference")
    worst = _worst_element(names[number], found[number], actual[number], expected[number], tolerances[number])
    if found[number].excess > 1:
        return GateReport(False, max_abs, max_rel, worst, str(worst))
    message = f"every output is within tolerance; nearest to its limit: {worst}"
    return GateReport(True, max_abs, max_rel, worst, message)


def _worst_element(
    name: str, found: Difference, actual: Array, expected: Array, tolerance: Tolerance
) -> WorstElement:
    index = tuple(int(i) for i in np.unravel_index(found.position or 0, expected.shape))
    a, e = _scalar(actual, index), _scalar(expected, index)
    magnitude = 0.0 if isinstance(e, str) else _magnitude(e)
    return WorstElement(name, index, a, e, tolerance.allowed(magnitude, found.unit))


def _magnitude(value: complex) -> float:
    return max(abs(value.real), abs(value.imag))


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
    """Both values with as many digits as it takes to tell them apart, six at least."""
    if isinstance(actual, str) or isinstance(expected, str):
        return repr(actual), repr(expected)
    for digits in (6, 9, 12, 17):
        texts = _number(actual, digits), _number(expected, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _number(value: complex, digits: int) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e+")


def _outputs(count: int) -> str:
    return "1 output" if count == 1 else f"{count} outputs"
