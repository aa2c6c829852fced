"""Functions of scalars that intrinsics lack, in forms that lose no digits and do not overflow early."""

from __future__ import annotations

import math

from intarsia.ir import DType
from intarsia.native.log_terms import LN2_HIGH, LN2_LOW, LOG_TERMS
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import (
    call,
    const,
    equal,
    exp,
    log,
    logical_and,
    logical_or,
    maximum,
    minimum,
    not_equal,
    select,
    sqrt,
)


def log1p(x: Expression) -> Expression:
    """Return log(1 + x), corrected for the digits that 1 + x loses (W. Kahan; N. J. Higham, ASNA, 1.14.1)."""
    whole = x + 1.0
    corrected = log(whole) * (x / (whole - 1.0))
    is_plain = logical_or(equal(whole, 1.0), equal(whole, math.inf))
    return select(is_plain, select(equal(whole, 1.0), x, whole), corrected)


def absolute(x: Expression) -> Expression:
    """Return the magnitude; an unsigned integer is its own."""
    return x if x.dtype.value.startswith("uint") else call("abs", x)


def sigmoid(x: Expression) -> Expression:
    """Return 1 / (1 + exp(-x)), which is 0 where exp(-x) is infinite."""
    return 1.0 / (exp(-x) + 1.0)


def softplus(x: Expression) -> Expression:
    """Return log(1 + exp(x)), which is x where exp(x) would be infinite."""
    below = exp(-absolute(x))
    return maximum(x, 0.0) + (_log1p_up_to_1(below) if x.dtype is DType.FLOAT32 else log1p(below))


def _log1p_up_to_1(x: Expression) -> Expression:
    """Return log(1 + x) for float32 from 0 to 1 by one polynomial; the error is at most 2 ULP.

    From sqrt(2) - 1 on, 1 + x is halved: (1 + x) / 2 - 1 is computed without the rounding of 1 + x. It takes
    a third of the time of `log1p`, which divides.
    """
    is_low = x < math.sqrt(2.0) - 1.0
    near_one = select(is_low, x, x * 0.5 - 0.5)
    square = near_one * near_one
    series = const(LOG_TERMS[-1], x.dtype)
    for term in reversed(LOG_TERMS[:-1]):
        series = series * near_one + term
    tail = series * near_one * square + square * -0.5
    zero = const(0.0, x.dtype)
    above = near_one + (tail + select(is_low, zero, const(LN2_LOW, x.dtype)))
    return above + select(is_low, zero, const(LN2_HIGH, x.dtype))


def expm1_below_0(x: Expression) -> Expression:
    """Return exp(x) - 1 for x up to 0; by the Taylor series near 0, where the difference loses digits."""
    # Terms of exp(x) - 1 up to x ** degree: at 0.35 the next one is below the rounding of the type.
    degree = 14 if x.dtype is DType.FLOAT64 else 7
    series = x * (1 / degree) + 1.0
    for divisor in range(degree - 1, 1, -1):
        series = series * (x * (1 / divisor)) + 1.0
    return select(x > -0.35, series * x, exp(x) - 1.0)


def mish(x: Expression) -> Expression:
    """Return x * tanh(softplus(x)) as a quotient of one exponential, which is clamped against overflow."""
    # tanh(softplus(x)) is 1 in every float type from x = 20 on: exp(-2 * 20) is below half a ulp of float64.
    power = exp(minimum(x, 20.0))
    above = power * (power + 2.0)
    return x * (above / (above + 2.0))


def is_nan(x: Expression) -> Expression:
    """Return whether a float is NaN."""
    return not_equal(x, x)


def sign(x: Expression) -> Expression:
    """Return -1, 0 or 1; NaN for NaN."""
    positive = select(x > 0, const(1, x.dtype), x * 0 if x.dtype.is_float else const(0, x.dtype))
    if x.dtype.is_float:
        return select(is_nan(x), x, select(x < 0, const(-1, x.dtype), select(x > 0, const(1, x.dtype), x)))
    return positive if x.dtype.value.startswith("uint") else select(x < 0, const(-1, x.dtype), positive)


def asinh(x: Expression) -> Expression:
    """Return the inverse of sinh, odd, and log(2 |x|) where the square would overflow."""
    size = absolute(x)
    # sqrt(s * s + 1) - 1 cancels for small s: s * s / (sqrt(s * s + 1) + 1) is the same without the loss.
    small = log1p(size + size * size / (sqrt(size * size + 1.0) + 1.0))
    magnitude = select(size > _square_limit(x.dtype), log(size) + math.log(2), small)
    return select(x < 0, -magnitude, select(equal(x, 0), x, magnitude))


def acosh(x: Expression) -> Expression:
    """Return the inverse of cosh; NaN below 1."""
    above = x - 1.0
    small = log1p(above + sqrt(above * (above + 2.0)))
    return select(x > _square_limit(x.dtype), log(x) + math.log(2), small)


def atanh(x: Expression) -> Expression:
    """Return the inverse of tanh; NaN beyond -1 and 1."""
    size = absolute(x)
    result = log1p(2.0 * size / (1.0 - size)) * 0.5
    return select(x < 0, -result, result)


def truncating_quotient(dividend: Expression, divisor: Expression) -> Expression:
    """Return the quotient of integers towards zero; 0 for a divisor of 0, which machines trap at.

    The least integer divided by -1 is itself, as for integers that wrap around.
    """
    is_signed = not dividend.dtype.value.startswith("uint")
    is_trap = equal(divisor, 0)
    if is_signed:
        is_trap = logical_or(is_trap, equal(divisor, -1))
    # A select evaluates both values, so the divisor itself must be safe; the least integer by -1 traps too.
    safe = select(is_trap, const(1, divisor.dtype), divisor)
    floored = dividend // safe
    if not is_signed:
        return select(is_trap, const(0, dividend.dtype), floored)
    is_inexact = not_equal(floored * safe, dividend)
    # Floor and truncation differ for inexact negative quotients only, whose floor is negative too.
    is_below = logical_and(is_inexact, floored < 0)
    quotient = select(is_below, floored + 1, floored)
    return select(is_trap, select(equal(divisor, 0), const(0, dividend.dtype), -dividend), quotient)


def floored_remainder(dividend: Expression, divisor: Expression) -> Expression:
    """Return the remainder of integers with the sign of the divisor; 0 for a divisor of 0."""
    is_trap = equal(divisor, 0)
    if not dividend.dtype.value.startswith("uint"):
        is_trap = logical_or(is_trap, equal(divisor, -1))
    safe = select(is_trap, const(1, divisor.dtype), divisor)
    return dividend % safe  # of 1 it is 0


def clip(x: Expression, least: float, largest: float) -> Expression:
    """Return a float clamped between two numbers; NaN stays."""
    return minimum(maximum(x, least), largest)


def _square_limit(dtype: DType) -> float:
    """Return a size beyond which x * x + 1 rounds to x * x, and below which x * x is finite."""
    return 1e150 if dtype is DType.FLOAT64 else 1e18
