"""Whether outputs are what a backend test expects: the rule of onnx's own runner, for every kind of value.

`onnx.backend.test.runner.Runner.assert_similar_outputs` is that rule for tensors of common element types;
it stumbles over absent values, lists of scalars and the small floats and integers of ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

BFLOAT16_RTOL = 2.0**-6


def mismatch(outputs: Sequence[Any], expected: Sequence[Any], rtol: float, atol: float) -> str:
    """What is wrong with the outputs of a model, in a few words; empty if nothing is."""
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    for number, (found, wanted) in enumerate(zip(outputs, expected, strict=True)):
        if complaint := _complaint(found, wanted, rtol, atol):
            return f"output {number}: {complaint}"
    return ""


def _complaint(found: Any, wanted: Any, rtol: float, atol: float) -> str:
    if found is None or wanted is None:
        return "" if found is wanted else f"{_kind(found)}, expected {_kind(wanted)}"
    if isinstance(found, list | tuple) or isinstance(wanted, list | tuple):
        if not isinstance(found, list | tuple) or not isinstance(wanted, list | tuple):
            return f"{_kind(found)}, expected {_kind(wanted)}"
        return mismatch(found, wanted, rtol, atol)
    return _array_complaint(np.asarray(found), np.asarray(wanted), rtol, atol)


def _kind(value: Any) -> str:
    if value is None:
        return "absent"
    return "a list" if isinstance(value, list | tuple) else "an array"


def _array_complaint(
    found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], rtol: float, atol: float
) -> str:
    if found.shape != wanted.shape:
        return f"shape {found.shape}, expected {wanted.shape}"
    if _is_text(found) and _is_text(wanted):
        return "" if found.astype(str).tolist() == wanted.astype(str).tolist() else "another text"
    if found.dtype != wanted.dtype:
        return f"element type {found.dtype}, expected {wanted.dtype}"
    if wanted.dtype.name == "bfloat16":
        rtol = max(rtol, BFLOAT16_RTOL)
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    got, want = found.astype(wide), wanted.astype(wide)
    close = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return ""
    worst = np.unravel_index(int(np.argmax(~close)), close.shape)
    share = f"{int((~close).sum())} of {close.size} elements differ"
    place = ", ".join(str(int(item)) for item in worst)
    return f"{share}, first [{place}]: {found[worst]}, expected {wanted[worst]}"


def _is_text(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind in "OUST"
