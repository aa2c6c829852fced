"""Self tests: inputs with the outputs that they had when the executable was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from intarsia.runtime.kernel import Array, Value
from intarsia.support.errors import VerificationError


@dataclass(frozen=True, slots=True, eq=False)
class SelfTest:
    """Inputs with their right outputs; arrays only, in the order of the plan."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


def largest_error(actual: Sequence[Value], expected: Sequence[Array]) -> float:
    """Return the largest absolute difference of any element; infinite if one is NaN or a text differs.

    Raises:
        VerificationError: Number, shapes or element types of the arrays differ.
    """
    if len(actual) != len(expected):
        raise VerificationError(f"the self test gave {len(actual)} outputs, expected {len(expected)}")
    return max((_error(i, a, b) for i, (a, b) in enumerate(zip(actual, expected, strict=True))), default=0.0)


def _error(index: int, actual: Value, expected: Array) -> float:
    if (
        not isinstance(actual, np.ndarray)
        or actual.shape != expected.shape
        or actual.dtype.kind != expected.dtype.kind
    ):
        shown = f"{actual.dtype} {actual.shape}" if isinstance(actual, np.ndarray) else type(actual).__name__
        raise VerificationError(
            f"output {index} of the self test is {shown}, expected {expected.dtype} {expected.shape}"
        )
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind in "OUST":
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    left, right = actual.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore"):  # infinity minus infinity: equal elements are sorted out first
        difference: Any = np.abs(left - right)
    difference = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, difference)
    return float(np.nan_to_num(difference, nan=np.inf, posinf=np.inf).max())
