"""Floats rounded into a type, as in quantized operators and resized images."""

from __future__ import annotations

from functools import cache

import numpy as np

from intarsia.ir import DType
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import call, highest, lowest, select


def saturated(value: Expression, dtype: DType) -> Expression:
    """Return a float as another float type, or rounded half to even and clamped to an integer type.

    NaN becomes the least integer, so that no conversion is undefined.
    """
    if not dtype.is_integer:
        return value.astype(dtype)
    return clipped(call("round_even", value), dtype)


def clipped(value: Expression, dtype: DType) -> Expression:
    """Return a float without fraction as an integer, clamped to the range; NaN becomes the least one."""
    low, high = _bounds(value.dtype, dtype)
    # Both are one instruction: the comparison is false for NaN, and what it leaves is no NaN.
    at_least = select(value > low, value, low)
    return select(at_least < high, at_least, high).astype(dtype)


@cache
def _bounds(source: DType, target: DType) -> tuple[float, float]:
    """Return the outermost values of an integer type that a float type holds."""
    bounds = []
    for limit in (lowest(target), highest(target)):
        number = source.numpy.type(limit)
        # The limit was rounded away from 0, beyond the integer type: take the float before it.
        if abs(int(float(number))) > abs(int(limit)):
            number = np.nextafter(number, source.numpy.type(0))
        bounds.append(float(number))
    return bounds[0], bounds[1]
