"""Integer scalars as sums of multiples, and the ranges of their values.

Sums and products of machine integers wrap around, so a sum of multiples equals the scalar modulo the size of
its type: rewriting one into the other is exact. What rounds or compares needs the true value, which the
machine has where the range of the true value fits the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Literal, Load, LoopVar, Scalar
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.native.tir.scalar_math import limits, wrapped

Range: TypeAlias = tuple[int, int]
"""The least and the greatest value."""
Ranges: TypeAlias = Mapping[LoopVar, Range]


@dataclass(slots=True)
class Affine:
    """A constant plus multiples of scalars, which are no sums themselves.

    Attributes:
        terms: Factors, none 0, by scalar, in program order.
        constant: Constant term.
    """

    terms: dict[Scalar, int] = field(default_factory=dict)
    constant: int = 0

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """Return the sum of this form and a multiple of another."""
        return Affine(dict(self.terms), self.constant).add(other, factor)

    def add(self, other: Affine, factor: int = 1) -> Affine:
        """Add a multiple of another form to this one, which is returned."""
        terms = self.terms
        for scalar, count in other.terms.items():
            total = terms.get(scalar, 0) + factor * count
            if total:
                terms[scalar] = total
            else:
                del terms[scalar]
        self.constant += factor * other.constant
        return self

    def times(self, factor: int) -> Affine:
        """Return a multiple of this form."""
        if not factor:
            return Affine()
        return Affine({s: n * factor for s, n in self.terms.items()}, self.constant * factor)

    def factor_of(self, scalar: Scalar) -> int:
        """Return the factor of a scalar; 0 if it has no term."""
        return self.terms.get(scalar, 0)


def affine(scalar: Scalar) -> Affine:
    """Return a scalar of a signed integer type as a sum of multiples."""
    if not isinstance(scalar, (Arith, Literal)):
        return Affine({scalar: 1})
    match scalar:
        case Literal(value=value) if isinstance(value, int):
            return Affine({}, value)
        case Arith(op=ArithOp.ADD, operands=(left, right)):
            return affine(left).add(affine(right))
        case Arith(op=ArithOp.SUB, operands=(left, right)):
            return affine(left).add(affine(right), -1)
        case Arith(op=ArithOp.MUL, operands=(left, Literal(value=int(factor)))):
            return affine(left).times(factor)
        case Arith(op=ArithOp.MUL, operands=(Literal(value=int(factor)), right)):
            return affine(right).times(factor)
        case _:
            return Affine({scalar: 1})


def as_scalar(form: Affine, dtype: DType) -> Scalar:
    """Return the sum as a scalar: positive terms first, then negative ones, the constant last."""
    ordered = sorted(form.terms.items(), key=lambda term: term[1] < 0)
    constant = wrapped(form.constant, dtype)
    result: Scalar | None = None
    if constant > 0 and ordered and ordered[0][1] < 0:
        result, constant = Literal(constant, dtype), 0
    # Factors wrap to the type: sums of multiples are equal modulo its size.
    for scalar, given in ordered:
        factor = wrapped(given, dtype)
        if result is not None and limits(dtype)[0] < factor < 0:
            result = Arith(ArithOp.SUB, (result, _multiple(scalar, -factor, dtype)))
        else:
            multiple = _multiple(scalar, factor, dtype)
            result = multiple if result is None else Arith(ArithOp.ADD, (result, multiple))
    if result is None:
        return Literal(constant, dtype)
    if constant == 0:
        return result
    # The least integer of a type has no negation in it, so it is added rather than its negation subtracted.
    if limits(dtype)[0] < constant < 0:
        return Arith(ArithOp.SUB, (result, Literal(-constant, dtype)))
    return Arith(ArithOp.ADD, (result, Literal(constant, dtype)))


def _multiple(scalar: Scalar, factor: int, dtype: DType) -> Scalar:
    return scalar if factor == 1 else Arith(ArithOp.MUL, (scalar, Literal(factor, dtype)))


def bounds(form: Affine, ranges: Ranges) -> Range:
    """Return the range of the true value of a sum."""
    low = high = form.constant
    for scalar, factor in form.terms.items():
        least, greatest = scalar_range(scalar, ranges)
        low += factor * (least if factor > 0 else greatest)
        high += factor * (greatest if factor > 0 else least)
    return low, high


def fits(values: Range, dtype: DType) -> bool:
    """Return whether a type has all the integers of a range."""
    low, high = limits(dtype)
    return low <= values[0] and values[1] <= high


def scalar_range(scalar: Scalar, ranges: Ranges) -> Range:
    """Return the range of an integer scalar as the machine has it; a bool is 0 or 1."""
    dtype = scalar_dtype(scalar)
    if dtype is DType.BOOL:
        return 0, 1
    assert dtype is not None
    if not dtype.is_integer:
        return limits(DType.INT64)
    values = _range(scalar, ranges)
    return limits(dtype) if values is None or not fits(values, dtype) else values


def _range(scalar: Scalar, ranges: Ranges) -> Range | None:
    """Return the range of the true value, or None if all of the type is possible."""
    match scalar:
        case LoopVar():
            return ranges.get(scalar, (0, limits(DType.INT64)[1]))
        case Literal(value=value):
            return int(value), int(value)
        case Load():
            return None
        case Cast(value=value) if (dtype := scalar_dtype(value)) and not dtype.is_float:
            return scalar_range(value, ranges)
        case Arith(op=ArithOp.FLOOR_DIV, operands=(left, Literal(value=int(by)))) if by > 0:
            low, high = scalar_range(left, ranges)
            return low // by, high // by
        case Arith(op=ArithOp.FLOOR_MOD, operands=(left, Literal(value=int(by)))) if by > 0:
            # Inside one multiple of `by` the remainder grows with the value; beyond, it takes any value.
            low, high = scalar_range(left, ranges)
            return (low % by, high % by) if low // by == high // by else (0, by - 1)
        case Arith(op=op, operands=(left, right)):
            return _range_of_two(op, scalar_range(left, ranges), scalar_range(right, ranges))
        case Arith(op=ArithOp.SELECT, operands=(_, left, right)):
            (low, high), (other_low, other_high) = scalar_range(left, ranges), scalar_range(right, ranges)
            return min(low, other_low), max(high, other_high)
        case _:
            return None


def _range_of_two(op: ArithOp, left: Range, right: Range) -> Range | None:
    match op:
        case ArithOp.ADD:
            return left[0] + right[0], left[1] + right[1]
        case ArithOp.SUB:
            return left[0] - right[1], left[1] - right[0]
        case ArithOp.MUL:
            corners = [a * b for a in left for b in right]
            return min(corners), max(corners)
        case ArithOp.MIN:
            return min(left[0], right[0]), min(left[1], right[1])
        case ArithOp.MAX:
            return max(left[0], right[0]), max(left[1], right[1])
        case _:
            return None
