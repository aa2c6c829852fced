"""Floats rounded into a type, as quantized operators and resized images want it."""

from __future__ import annotations

from functools import cache

import numpy as np

from intarsia.ir import DType
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import call, highest, lowest, minimum, select


def saturated(value: Expression, dtype: DType) -> Expression:
    """A float as another float, or rounded half to even and brought into the range of integers.

    NaN becomes the least integer, so that no conversion is undefined.
    """
    if not dtype.is_integer:
        return value.astype(dtype)
    return clipped(call("round_even", value), dtype)


def clipped(value: Expression, dtype: DType) -> Expression:
    """A float without fraction as an integer, brought into the range; NaN becomes the least one."""
    low, high = _bounds(value.dtype, dtype)
    at_least = select(value >= low, value, low)
    return minimum(at_least, high).astype(dtype)


@cache
def _bounds(source: DType, target: DType) -> tuple[float, float]:
    """The outermost values of an integer type that a float type holds."""
    found = []
    for limit in (lowest(target), highest(target)):
        number = source.numpy.type(limit)
        if abs(int(float(number))) > abs(int(limit)):
            number = np.nextafter(number, source.numpy.type(0))
        found.append(float(number))
    return found[0], found[1]
