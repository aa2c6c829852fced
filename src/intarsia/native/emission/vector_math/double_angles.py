"""Hyperbolic functions and inverse trigonometric ones in float64, for machines without a C library.

The largest errors over random numbers are stated with each function and tested.
"""

from __future__ import annotations

from math import factorial, inf, pi
from typing import Final

from intarsia.native.emission.vector_math.double import Doubles, exp_double

_SINH_TERMS: Final = tuple(1.0 / factorial(2 * number + 1) for number in range(11))
_COSH_TERMS: Final = tuple(1.0 / factorial(2 * number) for number in range(11))
_ATAN_TERMS: Final = tuple((-1.0) ** number / (2 * number + 1) for number in range(14))
_NEAR: Final = 1.0
"""Size of an argument up to which hyperbolic functions are their series."""
_FAR: Final = 20.0
"""Size of an argument from which tanh is 1 or -1."""
_PI_HALF_LOW: Final = 6.123233995736766e-17
"""What pi / 2 in float64 lacks."""


def sinh_double(doubles: Doubles, x: str) -> str:
    """Emit the hyperbolic sine; the error is at most 4 ULP."""
    size = doubles.absolute(x)
    near = doubles.op("fmul", x, doubles.polynomial(doubles.op("fmul", x, x), _SINH_TERMS))
    root = exp_double(doubles, doubles.op("fmul", size, doubles.number(0.5)))
    half = doubles.op("fmul", root, doubles.number(0.5))
    less = doubles.op("fdiv", doubles.number(0.25), half)  # half of 1 / root
    far = doubles.exact("fsub", doubles.op("fmul", half, root), doubles.op("fdiv", less, root))
    is_near = doubles.test("ole", size, doubles.number(_NEAR))
    return doubles.choose(is_near, near, doubles.with_sign(far, x))


def cosh_double(doubles: Doubles, x: str) -> str:
    """Emit the hyperbolic cosine; the error is at most 4 ULP."""
    root = exp_double(doubles, doubles.op("fmul", doubles.absolute(x), doubles.number(0.5)))
    half = doubles.op("fmul", root, doubles.number(0.5))
    less = doubles.op("fdiv", doubles.number(0.25), half)
    return doubles.exact("fadd", doubles.op("fmul", half, root), doubles.op("fdiv", less, root))


def tanh_double(doubles: Doubles, x: str) -> str:
    """Emit the hyperbolic tangent; the error is at most 4 ULP."""
    size, square = doubles.absolute(x), doubles.op("fmul", x, x)
    sine = doubles.op("fmul", x, doubles.polynomial(square, _SINH_TERMS))
    near = doubles.op("fdiv", sine, doubles.polynomial(square, _COSH_TERMS))
    limit = doubles.number(_FAR)
    most = doubles.choose(doubles.test("ogt", size, limit), limit, size)
    power = exp_double(doubles, doubles.op("fmul", most, doubles.number(2.0)))
    share = doubles.op("fdiv", doubles.number(2.0), doubles.exact("fadd", power, doubles.number(1.0)))
    far = doubles.exact("fsub", doubles.number(1.0), share)
    is_near = doubles.test("ole", size, doubles.number(_NEAR))
    return doubles.choose(is_near, near, doubles.with_sign(far, x))


def atan_double(doubles: Doubles, x: str) -> str:
    """Emit the angle of a tangent; the error is at most 4 ULP."""
    size, unit = doubles.absolute(x), doubles.number(1.0)
    is_steep = doubles.test("ogt", size, unit)
    y = doubles.choose(is_steep, doubles.op("fdiv", unit, size), size)
    for _ in range(2):  # the tangent of half of the angle, twice
        root = doubles.square_root(doubles.mul_add(y, y, unit))
        y = doubles.op("fdiv", y, doubles.exact("fadd", unit, root))
    angle = doubles.op("fmul", y, doubles.polynomial(doubles.op("fmul", y, y), _ATAN_TERMS))
    angle = doubles.op("fmul", angle, doubles.number(4.0))
    rest = doubles.exact("fsub", doubles.number(_PI_HALF_LOW), angle)
    steep = doubles.exact("fadd", doubles.number(pi / 2), rest)
    return doubles.with_sign(doubles.choose(is_steep, steep, angle), x)


def asin_double(doubles: Doubles, x: str) -> str:
    """Emit the angle of a sine, NaN beyond 1; the error is at most 5 ULP."""
    unit = doubles.number(1.0)
    parts = doubles.exact("fsub", unit, x), doubles.exact("fadd", unit, x)
    cosine = doubles.square_root(doubles.op("fmul", *parts))
    tangent = doubles.op("fdiv", x, doubles.exact("fadd", unit, cosine))
    return doubles.op("fmul", atan_double(doubles, tangent), doubles.number(2.0))


def acos_double(doubles: Doubles, x: str) -> str:
    """Emit the angle of a cosine, NaN beyond 1; the error is at most 4 ULP."""
    unit = doubles.number(1.0)
    share = doubles.op("fdiv", doubles.exact("fsub", unit, x), doubles.exact("fadd", unit, x))
    share = doubles.choose(doubles.test("oeq", x, doubles.number(-1.0)), doubles.number(inf), share)
    return doubles.op("fmul", atan_double(doubles, doubles.square_root(share)), doubles.number(2.0))
