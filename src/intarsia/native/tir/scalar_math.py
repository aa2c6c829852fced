"""The results of scalar operations, one scalar at a time.

Floats are NumPy scalars of their type (bfloat16: of ml_dtypes), whose operators round once; integers are
Python integers inside their type's limits; bools are Python or NumPy bools. Transcendental functions are
computed in float64 and rounded to their type.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, Final, TypeAlias, assert_never

import numpy as np

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Intrinsic, Literal
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.support.errors import ExecutionError

Number: TypeAlias = Any
"""A scalar as described above; NumPy's types for them say nothing about their operators."""


def number_of_literal(literal: Literal) -> Number:
    """Return the value of a literal."""
    value = literal.value
    return literal.dtype.numpy.type(value) if literal.dtype.is_float else value


def literal_of_number(value: Number, dtype: DType) -> Literal:
    """Return the literal of a value."""
    if dtype.is_float:
        return Literal(float(value), dtype)
    return Literal(bool(value) if dtype is DType.BOOL else int(value), dtype)


@cache
def limits(dtype: DType) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type."""
    found = np.iinfo(dtype.value)
    return int(found.min), int(found.max)


def wrapped(value: int, dtype: DType) -> int:
    """Return an integer modulo the size of its type."""
    low, high = limits(dtype)
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


def smaller(left: Number, right: Number) -> Number:
    """Return the lesser of two numbers; NaN if one is."""
    # `left != left` holds for NaN only: NaN on the left is returned, and NaN on the right fails `<=`.
    return left if left <= right or left != left else right


def greater(left: Number, right: Number) -> Number:
    """Return the greater of two numbers; NaN if one is."""
    return left if left >= right or left != left else right


def floor_divided(left: int, right: int) -> int:
    """Return the quotient, rounded towards minus infinity.

    Raises:
        ExecutionError: Division by zero.
    """
    if right == 0:
        raise ExecutionError(f"{left} is divided by zero")
    return left // right


def floor_remainder(left: int, right: int) -> int:
    """Return the remainder of `floor_divided`, which has the sign of the divisor.

    Raises:
        ExecutionError: Division by zero.
    """
    if right == 0:
        raise ExecutionError(f"{left} is divided by zero")
    return left % right


_ARITHMETIC: Final[dict[ArithOp, Callable[..., Number]]] = {
    ArithOp.ADD: operator.add,
    ArithOp.SUB: operator.sub,
    ArithOp.MUL: operator.mul,
    ArithOp.DIV: operator.truediv,
    ArithOp.FLOOR_DIV: floor_divided,
    ArithOp.FLOOR_MOD: floor_remainder,
    ArithOp.MIN: smaller,
    ArithOp.MAX: greater,
    ArithOp.LT: operator.lt,
    ArithOp.LE: operator.le,
    ArithOp.EQ: operator.eq,
    ArithOp.NE: operator.ne,
    ArithOp.AND: lambda left, right: left and right,
    ArithOp.OR: lambda left, right: left or right,
    ArithOp.NOT: operator.not_,
    ArithOp.SELECT: lambda cond, then, otherwise: then if cond else otherwise,
}


@cache
def cast_function(source: DType, target: DType) -> Callable[[Number], Number]:
    """Return the cast between two types; it raises ExecutionError for a float beyond the integer type."""
    if target is DType.BOOL:
        return lambda value: bool(value != 0)
    if target.is_float:
        if source.is_float:
            return _narrowing(target)
        return lambda value: _rounded_integer(int(value), target)
    if source.is_float:
        return lambda value: _truncated(float(value), target)
    return lambda value: wrapped(int(value), target)


def _narrowing(target: DType) -> Callable[[Number], Number]:
    kind: Callable[[Number], Number] = target.numpy.type
    if target is not DType.BFLOAT16:
        return kind
    return lambda value: kind(_to_odd(float(value)))


def _to_odd(value: float) -> Number:
    """Round a float64 to odd as float32: rounding that to bfloat16 is like rounding the float64 itself."""
    near = np.float32(value)
    # Round to odd: a last bit of 1 marks an inexact result, which no second rounding takes for a tie.
    if not np.isfinite(near) or float(near) == value or int(near.view(np.uint32)) & 1:
        return near
    return np.nextafter(near, np.float32(math.inf if value > float(near) else -math.inf))


def _rounded_integer(value: int, target: DType) -> Number:
    return rounded(Fraction(value), target)


def _truncated(value: float, target: DType) -> int:
    low, high = limits(target)
    if not math.isfinite(value) or not low <= int(value) <= high:
        raise ExecutionError(f"{value} is outside of {target.value}")
    return int(value)


def rounded(exact: Fraction, dtype: DType) -> Number:
    """Return the float nearest to a rational number, ties to even; infinite if it is too large."""
    try:
        near = float(exact)
    except OverflowError:
        near = math.inf if exact > 0 else -math.inf
    if dtype is not DType.FLOAT64 and math.isfinite(near):
        wrong = exact - Fraction(near)
        if wrong and not int(np.float64(near).view(np.int64)) & 1:  # to odd: rounding again is exact
            near = math.nextafter(near, math.inf if wrong > 0 else -math.inf)
    return cast_function(DType.FLOAT64, dtype)(np.float64(near))


@cache
def intrinsic_function(name: str, dtype: DType) -> Callable[..., Number]:
    """Return an intrinsic on values of a type; shifts raise ExecutionError for too large counts."""
    if name == "fma":
        return lambda a, b, c: _fma(float(a), float(b), float(c), dtype)
    if dtype.is_integer:
        function = _INTEGER[name]
        if name.startswith("shift"):
            return lambda value, count: wrapped(function(value, _checked_shift(count, dtype)), dtype)
        return lambda *values: wrapped(function(*values), dtype)
    precise, narrowed = _FLOAT[name], cast_function(DType.FLOAT64, dtype)
    return lambda *values: narrowed(np.float64(precise(*map(np.float64, values))))


def operation(scalar: Arith | Cast | Intrinsic, values: tuple[Number, ...], dtype: DType) -> Number:
    """Apply an operation of a type to values.

    Raises:
        ExecutionError: What the language leaves undefined.
    """
    with np.errstate(all="ignore"):
        match scalar:
            case Arith():
                result = _ARITHMETIC[scalar.op](*values)
                return wrapped(result, dtype) if dtype.is_integer else result
            case Cast():
                source = scalar_dtype(scalar.value)
                assert source is not None, "loop functions are verified first"
                return cast_function(source, dtype)(*values)
            case Intrinsic():
                return intrinsic_function(scalar.name, dtype)(*values)
            case _:
                assert_never(scalar)


def _checked_shift(count: int, dtype: DType) -> int:
    if not 0 <= count < np.iinfo(dtype.value).bits:
        raise ExecutionError(f"{dtype.value} is shifted by {count}")
    return count


def _fma(a: float, b: float, c: float, dtype: DType) -> Number:
    if math.isfinite(a) and math.isfinite(b):
        if not math.isfinite(c):
            return dtype.numpy.type(c)
        if exact := Fraction(a) * Fraction(b) + Fraction(c):
            return rounded(exact, dtype)
    narrowed = cast_function(DType.FLOAT64, dtype)
    return narrowed(np.float64(a) * np.float64(b) + np.float64(c))


def _dot_of_bytes(unsigned: int, signed: int) -> int:
    """Return the sum of products of the four bytes of two words: the first unsigned, the second signed."""
    left, right = (word.to_bytes(4, "little", signed=True) for word in (unsigned, signed))
    return sum(a * (b - 256 if b > 127 else b) for a, b in zip(left, right, strict=True))


def _dot_of_halves(left: int, right: int) -> int:
    """Return the sum of products of the two signed halves of two words."""
    first, second = (np.array([word], np.int32).view(np.int16).astype(np.int64) for word in (left, right))
    return int(np.dot(first, second))


def _dot_of_bfloats(left: np.float64, right: np.float64) -> np.float64:
    """Return the sum of products of the halves of two words, which are bfloat16 numbers."""
    words = np.array([int(left) % 2**32, int(right) % 2**32], np.uint32)
    upper, lower = (bits.view(np.float32).astype(np.float64) for bits in (words & 0xFFFF0000, words << 16))
    return np.float64(upper[0] * upper[1] + lower[0] * lower[1])


def _pair_of_bfloats(low: Number, high: Number) -> int:
    """Return the word of two numbers rounded to bfloat16."""
    lower, upper = (int(DType.BFLOAT16.numpy.type(value).view(np.uint16)) for value in (low, high))
    return lower | upper << 16


_INTEGER: Final[dict[str, Callable[..., int]]] = {
    "abs": abs,
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "bit_not": operator.invert,
    "dot_u8s8": _dot_of_bytes,
    "dot_s16": _dot_of_halves,
    "pair_bf16": _pair_of_bfloats,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
}
_FLOAT: Final[dict[str, Callable[..., Any]]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tan")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan")},
    **{name: getattr(np, name) for name in ("sinh", "cosh", "tanh", "floor", "ceil", "trunc", "abs")},
    "round_even": np.rint,
    "pow": np.power,
    "erf": math.erf,
    "dot_bf16": _dot_of_bfloats,
    "flushed": operator.pos,
}
