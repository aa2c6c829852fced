"""Compare outputs with expected ones by fixed tolerances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.difference import Array, Difference, difference
from intarsia.measure.judge.gate_report import (
    EQUAL,
    GateReport,
    Scalar,
    WorstElement,
    outputs_text,
    structural_complaint,
    structure_report,
)
from intarsia.measure.judge.tolerance import Tolerance


def compare(
    actual: Sequence[Array], expected: Sequence[Array], names: Sequence[str], tolerances: Sequence[Tolerance]
) -> GateReport:
    """Judge the outputs of a candidate by those of the reference.

    NaN and infinities must be in the same places. Arrays are compared in blocks: the temporaries are
    small, unless an array is not contiguous.

    Args:
        actual: The outputs of the candidate.
        expected: The outputs of the reference.
        names: The names of the expected outputs, for messages.
        tolerances: Tolerance of each expected output.

    Raises:
        ValueError: There are not as many names or tolerances as expected outputs.
    """
    if not len(expected) == len(names) == len(tolerances):
        raise ValueError(f"{len(expected)} outputs, {len(names)} names and {len(tolerances)} tolerances")
    if len(actual) != len(expected):
        return structure_report(f"the result has {outputs_text(len(actual))}, expected {len(expected)}")
    actual, expected = [np.asarray(a) for a in actual], [np.asarray(e) for e in expected]
    for a, e, name in zip(actual, expected, names, strict=True):
        if complaint := structural_complaint(a, e):
            return structure_report(f'output "{name}" has {complaint}')
    differences = [difference(a, e, t) for a, e, t in zip(actual, expected, tolerances, strict=True)]
    return _report(differences, actual, expected, names, tolerances)


def holds_only_nan(array: Array) -> bool:
    """Return whether an array has NaN and no finite element."""
    if array.size == 0 or element_kind(array.dtype) not in {ElementKind.FLOAT, ElementKind.COMPLEX}:
        return False
    return not bool(np.isfinite(array).any()) and bool(np.isnan(array).any())


def _report(
    differences: Sequence[Difference],
    actual: Sequence[Array],
    expected: Sequence[Array],
    names: Sequence[str],
    tolerances: Sequence[Tolerance],
) -> GateReport:
    max_abs = max((item.max_abs for item in differences), default=0.0)
    max_rel = max((item.max_rel for item in differences), default=0.0)
    number = max(range(len(differences)), key=lambda i: differences[i].excess, default=0)
    if not differences or differences[number].position is None:
        return GateReport(True, max_abs, max_rel, None, EQUAL)
    worst, arrays = differences[number], (actual[number], expected[number])
    element = _worst_element(names[number], worst, *arrays, tolerances[number])
    if worst.excess > 1:
        return GateReport(False, max_abs, max_rel, element, str(element), worst.excess)
    message = f"every output is within tolerance; nearest to its limit: {element}"
    return GateReport(True, max_abs, max_rel, element, message, worst.excess)


def _worst_element(
    name: str, worst: Difference, actual: Array, expected: Array, tolerance: Tolerance
) -> WorstElement:
    position = worst.position or 0
    value: Scalar = WorstElement.of(name, position, actual, expected, 0.0).expected
    magnitude = 0.0 if isinstance(value, str) else max(abs(value.real), abs(value.imag))
    allowed = tolerance.allowed(magnitude, worst.unit)
    return WorstElement.of(name, position, actual, expected, allowed)
