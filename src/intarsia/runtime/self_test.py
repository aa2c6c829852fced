"""Inputs with the outputs that they gave when the executable was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from intarsia.runtime.kernel import Array, Value
from intarsia.support.errors import VerificationError


@dataclass(frozen=True, slots=True, eq=False)
class SelfTest:
    """One call with its right answer; arrays only, in the order of the plan's inputs and outputs."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


def largest_error(found: Sequence[Value], expected: Sequence[Array]) -> float:
    """The largest absolute difference of any element; infinite where only one is NaN or a text differs.

    Raises:
        VerificationError: Number, shapes or element types of the arrays differ.
    """
    if len(found) != len(expected):
        raise VerificationError(f"the self test gave {len(found)} outputs, expected {len(expected)}")
    return max((_error(i, a, b) for i, (a, b) in enumerate(zip(found, expected, strict=True))), default=0.0)


def _error(index: int, found: Value, expected: Array) -> float:
    if (
        not isinstance(found, np.ndarray)
        or found.shape != expected.shape
        or found.dtype.kind != expected.dtype.kind
    ):
        shown = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
        raise VerificationError(
            f"output {index} of the self test is {shown}, expected {expected.dtype} {expected.shape}"
        )
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind in "OUST":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore"):  # infinity minus infinity: equal elements are sorted out first
        difference: Any = np.abs(a - b)
    difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, difference)
    return float(np.nan_to_num(difference, nan=np.inf, posinf=np.inf).max())
