"""Activations that the range of integers computes: Q(Relu(x)) is Q(x) where 0 is the least integer."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from intarsia.ir import Call, Constant, Expr, Op, Tuple


def is_absorbed(value: Expr, scale: npt.NDArray[Any], zero: npt.NDArray[Any]) -> TypeGuard[Call]:
    """Whether a value is a Relu or Clip whose limits the integers cannot exceed.

    Args:
        value: The value that is quantised.
        scale: Scale of one element.
        zero: Zero point, of the type of the integers.
    """
    if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.domain:
        return False
    if value.op.name == "Relu":
        return _steps(0.0, scale, zero) <= np.iinfo(zero.dtype).min
    if value.op.name != "Clip":
        return False
    low, high = (_limit(value, position) for position in (1, 2))
    if low is None or high is None:
        return False
    limits = np.iinfo(zero.dtype)
    return _steps(low, scale, zero) <= limits.min and _steps(high, scale, zero) >= limits.max


def _steps(number: float, scale: npt.NDArray[Any], zero: npt.NDArray[Any]) -> float:
    """Return what a number is rounded to before it is clipped to the range of the integers."""
    with np.errstate(over="ignore"):
        return float(np.rint(np.float32(number) / np.float32(scale)) + int(zero))


def _limit(clip: Call, position: int) -> float | None:
    """Return a limit of Clip, infinite if it is left out; None if it is computed."""
    limit = clip.args[position] if position < len(clip.args) else Tuple(())
    if isinstance(limit, Tuple):
        return float("-inf") if position == 1 else float("inf")
    return float(limit.data.reshape(-1)[0]) if isinstance(limit, Constant) and limit.data.size == 1 else None
