"""Arguments of steps, and their noise."""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import Constant, DType, Expr, TensorType, Var
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.movement import moved_from

NOISES: Final = 12.0
"""Allowed error of an argument as a multiple of its measured noise (as for elements: docs/judge.md)."""

_FLOATS: Final = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64})


def is_real(expr: Expr) -> bool:
    """Whether an expression is a tensor of floating-point numbers."""
    return isinstance(expr.checked_type, TensorType) and expr.checked_type.dtype in _FLOATS


def is_exact(expr: Expr) -> bool:
    """Return whether all engines get the same numbers: an input, or moved parts of it."""
    return isinstance(moved_from(expr)[0], (Var, Constant))


def argument_noise(runs: ReferenceRuns, key: str) -> Array | None:
    """Return the allowed error of each element of an exposed value; None if it is unknown."""
    value, spread = runs.exposed.get(key), runs.exposed_spreads.get(key)
    if value is None or spread is None or not np.isfinite(value).all() or not np.isfinite(spread).all():
        return None
    size = float(np.sqrt(np.mean(np.square(value, dtype=np.float64)))) if value.size else 0.0
    usual = max(float(np.sqrt(np.mean(np.square(spread, dtype=np.float64)))), 8 * 2.0**-23 * size)
    return NOISES * np.maximum(spread.astype(np.float64), usual)


def static_shape(expr: Expr) -> tuple[int, ...] | None:
    """The shape of an expression; None if it is known only at run time."""
    type_ = expr.checked_type
    return type_.static_shape if isinstance(type_, TensorType) and type_.is_static else None
