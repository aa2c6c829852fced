"""The results that checks are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.judges import Results
from intarsia.measure.judge.numeric_check import real_parts


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceRuns:
    """The results of judges for one input set.

    Attributes:
        inputs: The input set, by parameter name.
        names: The outputs' names.
        outputs: The outputs that count as right.
        spreads: Largest difference of any trusted run, for each output, by element (see
            `NumericCheck.spread`); 1 for integers that differ. None where the noise is not known.
        exposed: Exposed inner values of the program, by key.
        exposed_spreads: Their spreads.
        slacks: Additional allowed difference of each element of each output, where a step within the program
            may
            fall on either side; None for outputs behind no such step.
    """

    inputs: Mapping[str, Array]
    names: tuple[str, ...]
    outputs: Results
    spreads: tuple[Array | None, ...]
    exposed: Mapping[str, Array]
    exposed_spreads: Mapping[str, Array | None]
    slacks: tuple[Array | None, ...]


def spread(pairs: Sequence[tuple[Array, Array]]) -> Array | None:
    """Return the largest difference of pairs of arrays, by element; infinite where only one is not finite.

    It is None without a pair, for different shapes, and for texts.
    """
    largest: Array | None = None
    for first, second in pairs:
        if first.shape != second.shape or first.dtype != second.dtype:
            return None
        off = _difference(first, second)
        if off is None:
            return None
        largest = off if largest is None else np.maximum(largest, off)
    return largest


def _difference(first: Array, second: Array) -> Array | None:
    kind = element_kind(first.dtype)
    if kind is ElementKind.INTEGER:
        return np.asarray(first != second).astype(np.uint8)
    if kind not in {ElementKind.FLOAT, ElementKind.COMPLEX}:
        return None
    left, right = real_parts(first), real_parts(second)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(left - right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    off = np.where(same, 0.0, np.where(np.isfinite(off), off, np.inf))
    # Rounded up: a spread that is too small would fail the judge that it was measured on.
    narrow = off.astype(np.float32)
    return np.where(off > 0, np.nextafter(narrow, np.float32(np.inf)), narrow)
