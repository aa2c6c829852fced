"""Arithmetic on float32 lanes for the mathematical functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import copysign
from typing import Final

from intarsia.native.emission.builder import Builder
from intarsia.native.emission.types import constant, overload, vector_type

_TABLE: Final = 16
_MAGIC: Final = 12582912.0
"""1.5 * 2**23: float32 of that magnitude are integers, so adding it rounds to the nearest integer."""
_BIAS: Final = 127
_MANTISSA: Final = 23


@cache
def _float_constant(value: float, lanes: int) -> str:
    assert value or copysign(1.0, value) > 0  # the cache does not distinguish -0.0 from 0.0
    import numpy as np

    with np.errstate(over="ignore"):
        return constant(float(np.float32(value)), "float", lanes)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Emits instructions on float32 lanes (0 lanes for a scalar); operands and results are texts.

    Products and sums may be fused: the functions allow for that.
    """

    builder: Builder
    lanes: int
    has_avx512: bool = False

    @property
    def has_tables(self) -> bool:
        """Whether one instruction looks up all lanes in a table of sixteen numbers."""
        return self.has_avx512 and self.lanes == _TABLE

    @property
    def floats(self) -> str:
        """The LLVM type of the numbers."""
        return vector_type("float", self.lanes)

    @property
    def integers(self) -> str:
        """The LLVM type of their bits."""
        return vector_type("i32", self.lanes)

    def number(self, value: float) -> str:
        """A constant; it is rounded to float32."""
        return _float_constant(value, self.lanes)

    def integer(self, value: int) -> str:
        """A constant of the bits' type."""
        return constant(value, "i32", self.lanes)

    def float_op(self, op: str, left: str, right: str) -> str:
        """A product, sum, difference or quotient."""
        return self.builder.pure(f"{op} contract {self.floats} {left}, {right}")

    def add(self, left: str, right: str) -> str:
        """The sum."""
        return self.float_op("fadd", left, right)

    def sub(self, left: str, right: str) -> str:
        """The difference."""
        return self.float_op("fsub", left, right)

    def mul(self, left: str, right: str) -> str:
        """The product."""
        return self.float_op("fmul", left, right)

    def mul_add(self, left: str, right: str, more: str) -> str:
        """`left * right + more`."""
        return self.add(self.mul(left, right), more)

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """The polynomial whose coefficients are given from the constant up."""
        result = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.mul_add(result, x, self.number(coefficient))
        return result

    def bits(self, x: str) -> str:
        """The bits of numbers."""
        return self.builder.pure(f"bitcast {self.floats} {x} to {self.integers}")

    def of_bits(self, bits: str) -> str:
        """The numbers of bits."""
        return self.builder.pure(f"bitcast {self.integers} {bits} to {self.floats}")

    def int_op(self, op: str, left: str, right: str) -> str:
        """An operation on bits."""
        return self.builder.pure(f"{op} {self.integers} {left}, {right}")

    def test(self, test: str, left: str, right: str) -> str:
        """A comparison of numbers."""
        return self.builder.pure(f"fcmp {test} {self.floats} {left}, {right}")

    def choose(self, cond: str, first: str, second: str) -> str:
        """`first` where the condition holds, `second` elsewhere."""
        mask = vector_type("i1", self.lanes)
        return self.builder.pure(f"select {mask} {cond}, {self.floats} {first}, {self.floats} {second}")

    def call(self, name: str, x: str) -> str:
        """An intrinsic that is an instruction everywhere: fabs, sqrt."""
        full = f"llvm.{name}.{overload('float', self.lanes)}"
        return self.builder.call(self.floats, full, f"{self.floats} {x}")

    def absolute(self, x: str) -> str:
        """Emit the absolute value."""
        return self.call("fabs", x)

    def with_sign(self, x: str, sign_of: str) -> str:
        """Emit a nonnegative number with the sign of another."""
        sign = self.int_op("and", self.bits(sign_of), self.integer(-(1 << 31)))
        return self.of_bits(self.int_op("or", self.bits(x), sign))

    def below(self, x: str, limit: float) -> str:
        """Emit the minimum of a number and a limit; NaN stays NaN."""
        return self.choose(self.test("ogt", x, self.number(limit)), self.number(limit), x)

    def nearest(self, x: str, more: int = _BIAS - 1) -> tuple[str, str]:
        """Round a number below 2**22 in magnitude; return the integer, and a number with it in its last bits.

        The addition of 1.5 * 2**23 + `more` shifts the integer, increased by `more`, into the last bits; NaN
        gives arbitrary bits.
        """
        magic = self.number(_MAGIC + more)
        moved = self.add(x, magic)
        return self.builder.pure(f"fsub {self.floats} {moved}, {magic}"), moved

    @property
    def has_scale(self) -> bool:
        """Whether one instruction multiplies by a power of two of any size."""
        return self.has_tables

    def scaled(self, x: str, power: str, where: str) -> str:
        """Emit `x * 2**power` where a condition holds, and 0 elsewhere; needs `has_scale`."""
        floats = f"{self.floats} "
        mask = self.builder.pure(f"bitcast {vector_type('i1', self.lanes)} {where} to i{self.lanes}")
        args = f"{floats}{x}, {floats}{power}, {floats}zeroinitializer, i{self.lanes} {mask}, i32 4"
        return self.builder.call(self.floats, "llvm.x86.avx512.mask.scalef.ps.512", args)

    def power_of_bits(self, moved: str) -> str:
        """Emit 2**(n - 1) for the integer n from -125 to 129 in a result of `nearest`; the last is infinite.

        The bits of the magic number leave the exponent field on its left, the power with its bias stays.
        """
        return self.of_bits(self.int_op("shl", self.bits(moved), self.integer(_MANTISSA)))

    def looked_up(self, table: Sequence[float], places: str) -> str:
        """Look up the last four bits of each lane in a table of sixteen numbers; needs `has_tables`."""
        numbers = ", ".join(f"float {_float_constant(value, 0)}" for value in table)
        args = f"{self.floats} <{numbers}>, {self.integers} {places}"
        return self.builder.call(self.floats, "llvm.x86.avx512.permvar.sf.512", args)
