"""log and log2 of float32 lanes."""

from __future__ import annotations

from typing import Final

from intarsia.native.emission.vector_math.lanes import Lanes
from intarsia.native.log_terms import LN2_HIGH, LN2_LOW, LOG_TERMS

_SQRT_HALF_BITS: Final = 0x3F3504F3
_LEAST_NORMAL: Final = 2.0**-126


def log(lanes: Lanes, x: str) -> str:
    """Emit the natural logarithm; the error is at most 2 ULP."""
    exponent, near_one = _split(lanes, x)
    square = lanes.mul(near_one, near_one)
    tail = lanes.mul(lanes.mul(lanes.polynomial(near_one, LOG_TERMS), near_one), square)
    tail = lanes.mul_add(exponent, lanes.number(LN2_LOW), tail)
    tail = lanes.mul_add(lanes.number(-0.5), square, tail)
    result = lanes.mul_add(exponent, lanes.number(LN2_HIGH), lanes.add(near_one, tail))
    return _special(lanes, x, result)


def log2(lanes: Lanes, x: str) -> str:
    """Emit the logarithm to base 2; the error is at most 3 ULP."""
    exponent, near_one = _split(lanes, x)
    square = lanes.mul(near_one, near_one)
    tail = lanes.mul(lanes.mul(lanes.polynomial(near_one, LOG_TERMS), near_one), square)
    tail = lanes.mul_add(lanes.number(-0.5), square, tail)
    # The factor log2(e) is 1 plus 0.44...: the term with factor 1 is added separately, and is exact.
    more = lanes.mul_add(lanes.number(0.44269504088896340736), tail, tail)
    more = lanes.mul_add(lanes.number(0.44269504088896340736), near_one, more)
    return _special(lanes, x, lanes.add(lanes.add(more, near_one), exponent))


def _split(lanes: Lanes, x: str) -> tuple[str, str]:
    """Split a positive number into 2**exponent * (1 + near_one), 1 + near_one from sqrt(1/2) to sqrt(2)."""
    is_small = lanes.test("olt", x, lanes.number(_LEAST_NORMAL))
    normal = lanes.choose(is_small, lanes.mul(x, lanes.number(2.0**23)), x)
    bits = lanes.bits(normal)
    # Subtracting the bits of sqrt(1/2) first makes the shifted exponent change at sqrt(1/2), not at 1: then
    # near_one is\nsmall around 1, and the logarithm has no cancellation there.
    over = lanes.int_op("sub", bits, lanes.integer(_SQRT_HALF_BITS))
    power = lanes.int_op("ashr", over, lanes.integer(23))
    mantissa = lanes.of_bits(lanes.int_op("sub", bits, lanes.int_op("shl", power, lanes.integer(23))))
    exponent = lanes.builder.pure(f"sitofp {lanes.integers} {power} to {lanes.floats}")
    lower = lanes.sub(exponent, lanes.number(23.0))
    return lanes.choose(is_small, lower, exponent), lanes.sub(mantissa, lanes.number(1.0))


def _special(lanes: Lanes, x: str, result: str) -> str:
    """Emit the special cases: infinity and NaN stay, zero gives minus infinity, negative numbers NaN."""
    infinity = lanes.number(float("inf"))
    result = lanes.choose(lanes.test("ult", x, infinity), result, x)
    result = lanes.choose(lanes.test("oeq", x, lanes.number(0.0)), lanes.number(float("-inf")), result)
    invalid = lanes.choose(lanes.test("olt", x, lanes.number(0.0)), lanes.number(float("nan")), result)
    return lanes.choose(lanes.test("uno", x, x), x, invalid)
