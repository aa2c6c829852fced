"""exp, log and powers in float64, for machines without a C library, such as GPUs.

The largest errors over random numbers are stated with each function and tested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial, inf, nan
from typing import Final

from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import constant, vector_type

_LOG2_E: Final = 1.4426950408889634
_LN2_HIGH: Final = 6.93147180369123816490e-01
"""The first 33 bits of log(2): its products by exponents are exact."""
_LN2_LOW: Final = 1.90821492927058770002e-10
_EXP_TERMS: Final = tuple(1.0 / factorial(number) for number in range(14))
_LOG_TERMS: Final = tuple(2.0 / (2 * number + 3) for number in range(10))
_MAGIC: Final = 1.5 * 2.0**52
_MAGIC_BITS: Final = 0x4338000000000000
_SQRT_HALF_BITS: Final = 0x3FE6A09E667F3BCD
_BIAS: Final = 1023
_MANTISSA: Final = 52
_TOP: Final = 710.0
"""Argument from which exponentials are infinite."""
_BOTTOM: Final = -746.0
"""Argument below which exponentials are 0."""


@dataclass(frozen=True, slots=True)
class Doubles:
    """Emits instructions on float64 lanes (0 lanes for a scalar); operands and results are texts."""

    builder: Builder
    lanes: int

    @property
    def floats(self) -> str:
        """The LLVM type of the numbers."""
        return vector_type("double", self.lanes)

    @property
    def integers(self) -> str:
        """The LLVM type of their bits."""
        return vector_type("i64", self.lanes)

    def number(self, value: float) -> str:
        """Emit a constant."""
        return constant(value, "double", self.lanes)

    def integer(self, value: int) -> str:
        """Emit a constant of the bits' type."""
        return constant(value, "i64", self.lanes)

    def op(self, name: str, left: str, right: str) -> str:
        """Emit a sum, difference, product or quotient; products and sums may be fused."""
        return self.builder.pure(f"{name} contract {self.floats} {left}, {right}")

    def exact(self, name: str, left: str, right: str) -> str:
        """Emit a sum or difference that is rounded by itself."""
        return self.builder.pure(f"{name} {self.floats} {left}, {right}")

    def mul_add(self, left: str, right: str, more: str) -> str:
        """Emit `left * right + more`."""
        return self.op("fadd", self.op("fmul", left, right), more)

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Emit the polynomial whose coefficients are given from the constant up."""
        result = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.mul_add(result, x, self.number(coefficient))
        return result

    def bits(self, x: str) -> str:
        """Emit the bits of numbers."""
        return self.builder.pure(f"bitcast {self.floats} {x} to {self.integers}")

    def of_bits(self, bits: str) -> str:
        """Emit the numbers of bits."""
        return self.builder.pure(f"bitcast {self.integers} {bits} to {self.floats}")

    def int_op(self, name: str, left: str, right: str) -> str:
        """Emit an operation on bits."""
        return self.builder.pure(f"{name} {self.integers} {left}, {right}")

    def test(self, name: str, left: str, right: str) -> str:
        """Emit a comparison of numbers."""
        return self.builder.pure(f"fcmp {name} {self.floats} {left}, {right}")

    def choose(self, cond: str, first: str, second: str) -> str:
        """Emit `first` where the condition holds, `second` elsewhere."""
        mask = vector_type("i1", self.lanes)
        return self.builder.pure(f"select {mask} {cond}, {self.floats} {first}, {self.floats} {second}")

    def absolute(self, x: str) -> str:
        """Emit the absolute value."""
        return self.of_bits(self.int_op("and", self.bits(x), self.integer(2**63 - 1)))

    def square_root(self, x: str) -> str:
        """Emit the square root."""
        kind = f"v{self.lanes}f64" if self.lanes else "f64"
        return self.builder.call(self.floats, f"llvm.sqrt.{kind}", f"{self.floats} {x}")

    def with_sign(self, size: str, x: str) -> str:
        """Emit numbers of 0 or more with the signs of others."""
        sign = self.int_op("and", self.bits(x), self.integer(-(2**63)))
        return self.of_bits(self.int_op("or", self.bits(size), sign))

    def both(self, first: str, second: str) -> str:
        """Emit whether two conditions hold."""
        return self.builder.pure(f"and {vector_type('i1', self.lanes)} {first}, {second}")


def exp_double(doubles: Doubles, x: str) -> str:
    """Emit e to the x; the error is at most 2 ULP, and 1.5 ULP of the least normal number below that."""
    x = doubles.choose(doubles.test("ogt", x, doubles.number(_TOP)), doubles.number(_TOP), x)
    x = doubles.choose(doubles.test("olt", x, doubles.number(_BOTTOM)), doubles.number(_BOTTOM), x)
    magic = doubles.number(_MAGIC)
    moved = doubles.exact(
        "fadd", doubles.builder.pure(f"fmul {doubles.floats} {x}, {doubles.number(_LOG2_E)}"), magic
    )
    power = doubles.exact("fsub", moved, magic)
    rest = doubles.mul_add(power, doubles.number(-_LN2_HIGH), x)
    rest = doubles.mul_add(power, doubles.number(-_LN2_LOW), rest)
    result = doubles.polynomial(rest, _EXP_TERMS)
    exponent = doubles.int_op("sub", doubles.bits(moved), doubles.integer(_MAGIC_BITS))
    half = doubles.int_op("ashr", exponent, doubles.integer(1))
    for part in (half, doubles.int_op("sub", exponent, half)):
        result = doubles.op("fmul", result, _power_of_two(doubles, part))
    return result


def _power_of_two(doubles: Doubles, exponent: str) -> str:
    biased = doubles.int_op("add", exponent, doubles.integer(_BIAS))
    return doubles.of_bits(doubles.int_op("shl", biased, doubles.integer(_MANTISSA)))


def log_double(doubles: Doubles, x: str) -> str:
    """Emit the natural logarithm; the error is at most 2 ULP."""
    is_small = doubles.test("olt", x, doubles.number(2.0**-1022))
    normal = doubles.choose(is_small, doubles.op("fmul", x, doubles.number(2.0**54)), x)
    bits = doubles.bits(normal)
    over = doubles.int_op("sub", bits, doubles.integer(_SQRT_HALF_BITS))
    power = doubles.int_op("ashr", over, doubles.integer(_MANTISSA))
    shifted = doubles.int_op("shl", power, doubles.integer(_MANTISSA))
    mantissa = doubles.of_bits(doubles.int_op("sub", bits, shifted))
    exponent = doubles.builder.pure(f"sitofp {doubles.integers} {power} to {doubles.floats}")
    lower = doubles.exact("fsub", exponent, doubles.number(54.0))
    exponent = doubles.choose(is_small, lower, exponent)
    near_one = doubles.exact("fsub", mantissa, doubles.number(1.0))
    share = doubles.op("fdiv", near_one, doubles.exact("fadd", near_one, doubles.number(2.0)))
    square = doubles.op("fmul", share, share)
    rest = doubles.op("fmul", square, doubles.polynomial(square, _LOG_TERMS))
    less = doubles.op("fmul", share, doubles.exact("fsub", near_one, rest))
    low = doubles.mul_add(exponent, doubles.number(_LN2_LOW), _negated(doubles, less))
    result = doubles.mul_add(exponent, doubles.number(_LN2_HIGH), doubles.exact("fadd", near_one, low))
    return _special_logarithms(doubles, x, result)


def _negated(doubles: Doubles, x: str) -> str:
    return doubles.builder.pure(f"fneg {doubles.floats} {x}")


def _special_logarithms(doubles: Doubles, x: str, result: str) -> str:
    """Emit the special cases: infinity and NaN stay, zero gives minus infinity, negative numbers NaN."""
    zero = doubles.number(0.0)
    result = doubles.choose(doubles.test("ult", x, doubles.number(inf)), result, x)
    result = doubles.choose(doubles.test("oeq", x, zero), doubles.number(-inf), result)
    result = doubles.choose(doubles.test("olt", x, zero), doubles.number(nan), result)
    return doubles.choose(doubles.test("uno", x, x), x, result)


def power_double(doubles: Doubles, x: str, y: str) -> str:
    """Emit x to the y; the relative error is at most 4e-16 times the larger of 2 and |y log(x)|."""
    unit, zero = doubles.number(1.0), doubles.number(0.0)
    size = doubles.absolute(x)
    result = exp_double(doubles, doubles.op("fmul", y, log_double(doubles, size)))
    is_whole = doubles.test("oeq", _floor(doubles, y), y)
    half = doubles.op("fmul", y, doubles.number(0.5))
    is_odd = doubles.both(is_whole, doubles.test("one", _floor(doubles, half), half))
    is_negative = _is_negative(doubles, x)
    result = doubles.choose(doubles.both(is_odd, is_negative), _negated(doubles, result), result)
    is_below = doubles.both(doubles.test("olt", x, zero), doubles.test("one", _floor(doubles, y), y))
    is_finite = doubles.both(is_below, doubles.test("ogt", size, zero))
    is_finite = doubles.both(is_finite, doubles.test("olt", size, doubles.number(inf)))
    result = doubles.choose(is_finite, doubles.number(nan), result)
    is_endless = doubles.test("oeq", doubles.absolute(y), doubles.number(inf))
    is_unit = doubles.both(doubles.test("oeq", size, unit), is_endless)
    for cond in (is_unit, doubles.test("oeq", x, unit), doubles.test("oeq", y, zero)):
        result = doubles.choose(cond, unit, result)
    return result


def _floor(doubles: Doubles, x: str) -> str:
    kind = f"v{doubles.lanes}f64" if doubles.lanes else "f64"
    return doubles.builder.call(doubles.floats, f"llvm.floor.{kind}", f"{doubles.floats} {x}")


def _is_negative(doubles: Doubles, x: str) -> str:
    return doubles.builder.pure(f"icmp slt {doubles.integers} {doubles.bits(x)}, {doubles.integer(0)}")


def in_double(
    builder: Builder, function: Callable[..., str], args: Sequence[str], element: str, lanes: int
) -> str:
    """Emit a function in float64 of numbers of a type, which its result has too."""
    doubles = Doubles(builder, lanes)
    if element == "double":
        return function(doubles, *args)
    kind = vector_type(element, lanes)
    wide = [builder.pure(f"fpext {kind} {arg} to {doubles.floats}") for arg in args]
    return builder.pure(f"fptrunc {doubles.floats} {function(doubles, *wide)} to {kind}")
