"""Operators on values that are not affine: floats, bools, integers, and int64 vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import ArithOp
from intarsia.native.emission.builder import Builder
from intarsia.native.emission.half import rounded
from intarsia.native.emission.types import (
    Value,
    constant,
    held_type,
    is_signed,
    scalar_constant,
    vector_type,
)

_FLOAT: Final = {ArithOp.ADD: "fadd", ArithOp.SUB: "fsub", ArithOp.MUL: "fmul", ArithOp.DIV: "fdiv"}
_INTEGER: Final = {ArithOp.ADD: "add", ArithOp.SUB: "sub", ArithOp.MUL: "mul"}
_FLOAT_TESTS: Final = {ArithOp.LT: "olt", ArithOp.LE: "ole", ArithOp.EQ: "oeq", ArithOp.NE: "une"}
_INTEGER_TESTS: Final = {ArithOp.LT: "lt", ArithOp.LE: "le", ArithOp.EQ: "eq", ArithOp.NE: "ne"}
_NEUTRAL: Final = {
    "ogt": (scalar_constant(-math.inf, "float"), scalar_constant(-math.inf, "float") + ")"),
    "olt": (scalar_constant(math.inf, "float"), scalar_constant(math.inf, "float") + ")"),
}
"""Suffixes of the constants that are neutral for a maximum (a minimum)."""
_ZEROS: Final = ("0x0000000000000000", "zeroinitializer")
_HALVES: Final = (DType.FLOAT16, DType.BFLOAT16)


def single_instruction(op: ArithOp, dtype: DType, contract: str) -> str:
    """Return the LLVM instruction of an operator on floats; "" if it is not a single one."""
    if op not in _FLOAT or not dtype.is_float or dtype in _HALVES:
        return ""
    return _FLOAT[op] + contract


def binary(builder: Builder, op: ArithOp, left: Value, right: Value, has_f16c: bool) -> Value:
    """Emit an operator on two values of one type."""
    lanes = left.lanes or right.lanes
    first, second = builder.splat(left, lanes), builder.splat(right, lanes)
    dtype = left.dtype
    kind = held_type(dtype, lanes)
    if op in _FLOAT and dtype.is_float:
        contract = builder.contract if dtype not in _HALVES else ""
        text = builder.pure(f"{_FLOAT[op]}{contract} {kind} {first}, {second}")
        if dtype in _HALVES:
            text = rounded(builder, text, dtype, lanes, has_f16c)
        return Value(text, dtype, lanes)
    if op in _INTEGER:
        return Value(builder.pure(f"{_INTEGER[op]} {kind} {first}, {second}"), dtype, lanes)
    if op is ArithOp.LT and dtype.is_float and second.endswith(_NEUTRAL["ogt"]):
        return Value("false", DType.BOOL, 0)  # nothing is below minus infinity
    if op in _FLOAT_TESTS:
        return Value(_test(builder, op, dtype, kind, first, second), DType.BOOL, lanes)
    return _OTHERS[op](builder, Value(first, dtype, lanes), Value(second, dtype, lanes))


def _test(builder: Builder, op: ArithOp, dtype: DType, kind: str, first: str, second: str) -> str:
    if dtype.is_float:
        return builder.pure(f"fcmp {_FLOAT_TESTS[op]} {kind} {first}, {second}")
    test = _INTEGER_TESTS[op]
    if op in (ArithOp.LT, ArithOp.LE):
        test = ("s" if is_signed(dtype) else "u") + test
    return builder.pure(f"icmp {test} {kind} {first}, {second}")


def select(builder: Builder, cond: Value, first: Value, second: Value) -> Value:
    """Emit `first if cond else second` for each lane."""
    if not cond.lanes and not cond.text.startswith("%"):
        return first if cond.text == "true" else second
    lanes = cond.lanes or first.lanes or second.lanes
    kind = held_type(first.dtype, lanes)
    left, right = builder.splat(first, lanes), builder.splat(second, lanes)
    test = held_type(DType.BOOL, cond.lanes)
    text = builder.pure(f"select {test} {cond.text}, {kind} {left}, {kind} {right}")
    return Value(text, first.dtype, lanes)


def constant_mask(lanes: tuple[bool, ...]) -> Value:
    """Return a constant mask."""
    parts = ", ".join(f"i1 {'true' if lane else 'false'}" for lane in lanes)
    return Value(f"<{parts}>", DType.BOOL, len(lanes))


def mask_lanes(mask: Value) -> tuple[bool, ...] | None:
    """Return the lanes of a constant mask; None for other masks."""
    if mask.text.startswith("splat"):
        return (" true" in mask.text,) * mask.lanes
    if not mask.text.startswith("<"):
        return None
    return tuple(part.endswith("true") for part in mask.text[1:-1].split(", "))


def bool_not(builder: Builder, value: Value) -> Value:
    """Emit the negation of a bool."""
    known = mask_lanes(value) if value.lanes else None
    if known is not None:
        return constant_mask(tuple(not lane for lane in known))
    if value.text in ("true", "false"):
        return Value("false" if value.text == "true" else "true", DType.BOOL, 0)
    kind, ones = held_type(DType.BOOL, value.lanes), constant(1, "i1", value.lanes)
    return Value(builder.pure(f"xor {kind} {value.text}, {ones}"), DType.BOOL, value.lanes)


def _logic(name: str, neutral: str) -> Callable[[Builder, Value, Value], Value]:
    def apply(builder: Builder, left: Value, right: Value) -> Value:
        if not left.lanes:
            for one, other in ((left, right), (right, left)):
                if one.text in ("true", "false"):
                    return other if one.text == neutral else one
        first, second = mask_lanes(left), mask_lanes(right)
        if first is not None and second is not None:
            both = zip(first, second, strict=True)
            return constant_mask(tuple((a and b) if name == "and" else (a or b) for a, b in both))
        kind = held_type(DType.BOOL, left.lanes)
        return Value(builder.pure(f"{name} {kind} {left.text}, {right.text}"), DType.BOOL, left.lanes)

    return apply


def _extreme(float_test: str, integer_test: str) -> Callable[[Builder, Value, Value], Value]:
    def apply(builder: Builder, left: Value, right: Value) -> Value:
        if left.dtype.is_float:
            return _float_extreme(builder, float_test, left, right)
        kind = held_type(left.dtype, left.lanes)
        sign = "s" if is_signed(left.dtype) else "u"
        test = builder.pure(f"icmp {sign}{integer_test} {kind} {left.text}, {right.text}")
        return select(builder, Value(test, DType.BOOL, left.lanes), left, right)

    return apply


def _float_extreme(builder: Builder, test: str, left: Value, right: Value) -> Value:
    """Emit a minimum or maximum that returns NaN if one operand is NaN."""
    # fcmp and select become one instruction, which returns the right operand if one is NaN: a constant goes
    # left,\nso that a NaN of the other operand stays, and no test for NaN is needed.
    if is_number(right.text):
        left, right = right, left
    if left.text.endswith(_NEUTRAL[test]):
        return right
    kind, mask = held_type(left.dtype, left.lanes), held_type(DType.BOOL, left.lanes)
    found = builder.pure(f"fcmp {test} {kind} {left.text}, {right.text}")
    best = builder.pure(f"select {mask} {found}, {kind} {left.text}, {kind} {right.text}")
    if not is_number(left.text):
        is_nan = builder.pure(f"fcmp uno {kind} {left.text}, {left.text}")
        best = builder.pure(f"select {mask} {is_nan}, {kind} {left.text}, {kind} {best}")
    return Value(best, left.dtype, left.lanes)


def is_number(text: str) -> bool:
    """Return whether the text of a float is a constant other than NaN."""
    return not text.startswith("%") and "0x7FF8000000000000" not in text


def is_zero(text: str) -> bool:
    """Return whether the text of a float is the constant 0 (not -0) in all lanes."""
    return text in _ZEROS or text.endswith(" 0x0000000000000000)")


def constant_of(text: str, dtype: DType) -> int | None:
    """Return the value of an integer constant that all lanes share; None for other values."""
    if text.startswith("splat"):
        text = text[text.rindex(" ") + 1 : -1]
    try:
        number = int(text)
    except ValueError:
        return None
    return number if is_signed(dtype) or number >= 0 else number + (1 << 8 * dtype.numpy.itemsize)


def _floor_div(builder: Builder, left: Value, right: Value) -> Value:
    return _floor(builder, left, right)[0]


def _floor_mod(builder: Builder, left: Value, right: Value) -> Value:
    return _floor(builder, left, right)[1]


def _floor(builder: Builder, left: Value, right: Value) -> tuple[Value, Value]:
    """Emit floor quotient and remainder; code generation drops the unused one."""
    divisor = constant_of(right.text, right.dtype)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return _by_power_of_two(builder, left, divisor)
    if not is_signed(left.dtype):
        return _unsigned(builder, left, right, divisor)
    return _signed(builder, left, right, divisor)


def _by_power_of_two(builder: Builder, left: Value, divisor: int) -> tuple[Value, Value]:
    kind, element = held_type(left.dtype, left.lanes), held_type(left.dtype)
    # An arithmetic shift rounds towards minus infinity, and so does the mask of a two's complement number.
    shift = "ashr" if is_signed(left.dtype) else "lshr"
    count = constant(divisor.bit_length() - 1, element, left.lanes)
    mask = constant(divisor - 1, element, left.lanes)
    quotient = builder.pure(f"{shift} {kind} {left.text}, {count}")
    rest = builder.pure(f"and {kind} {left.text}, {mask}")
    return Value(quotient, left.dtype, left.lanes), Value(rest, left.dtype, left.lanes)


def _unsigned(builder: Builder, left: Value, right: Value, divisor: int | None) -> tuple[Value, Value]:
    kind, element = held_type(left.dtype, left.lanes), held_type(left.dtype)
    by = right.text
    if not divisor:
        by = _unless(builder, right, 0, constant(1, element, left.lanes))
    quotient = builder.pure(f"udiv {kind} {left.text}, {by}")
    product = builder.pure(f"mul {kind} {quotient}, {by}")
    rest = builder.pure(f"sub {kind} {left.text}, {product}")
    return Value(quotient, left.dtype, left.lanes), Value(rest, left.dtype, left.lanes)


def _unless(builder: Builder, value: Value, number: int, other: str) -> str:
    """Emit `other` where a value equals a number, else the value."""
    kind, element = held_type(value.dtype, value.lanes), held_type(value.dtype)
    mask = vector_type("i1", value.lanes)
    test = builder.pure(f"icmp eq {kind} {value.text}, {constant(number, element, value.lanes)}")
    return builder.pure(f"select {mask} {test}, {kind} {other}, {kind} {value.text}")


def _signed(builder: Builder, left: Value, right: Value, divisor: int | None) -> tuple[Value, Value]:
    """Emit signed floor quotient and remainder.

    Machines round towards zero, and trap at a division by zero and of the least number by -1.
    """
    kind, element, lanes = held_type(left.dtype, left.lanes), held_type(left.dtype), left.lanes
    unit, nothing = constant(1, element, lanes), constant(0, element, lanes)
    mask, pure, dtype = vector_type("i1", lanes), builder.pure, left.dtype
    by = right.text
    if divisor in (None, 0, -1):
        by = _unless(builder, right, 0, unit)
        by = _unless(builder, Value(by, dtype, lanes), -1, unit)
    towards_zero = pure(f"sdiv {kind} {left.text}, {by}")
    product = pure(f"mul {kind} {towards_zero}, {by}")
    rest = pure(f"sub {kind} {left.text}, {product}")
    # The truncated quotient is 1 too high if the remainder is nonzero and its sign differs from the
    # divisor's.
    signs = pure(f"xor {kind} {rest}, {by}")
    differ = pure(f"icmp slt {kind} {signs}, {nothing}")
    some = pure(f"icmp ne {kind} {rest}, {nothing}")
    too_high = pure(f"and {mask} {differ}, {some}")
    lower = pure(f"sub {kind} {towards_zero}, {unit}")
    quotient = pure(f"select {mask} {too_high}, {kind} {lower}, {kind} {towards_zero}")
    higher = pure(f"add {kind} {rest}, {by}")
    remainder = pure(f"select {mask} {too_high}, {kind} {higher}, {kind} {rest}")
    if divisor in (None, 0, -1):
        negative = pure(f"sub {kind} {nothing}, {left.text}")
        is_minus_one = pure(f"icmp eq {kind} {right.text}, {constant(-1, element, lanes)}")
        quotient = pure(f"select {mask} {is_minus_one}, {kind} {negative}, {kind} {quotient}")
    return Value(quotient, dtype, lanes), Value(remainder, dtype, lanes)


_OTHERS: Final[dict[ArithOp, Callable[[Builder, Value, Value], Value]]] = {
    ArithOp.MIN: _extreme("olt", "lt"),
    ArithOp.MAX: _extreme("ogt", "gt"),
    ArithOp.FLOOR_DIV: _floor_div,
    ArithOp.FLOOR_MOD: _floor_mod,
    ArithOp.AND: _logic("and", "true"),
    ArithOp.OR: _logic("or", "false"),
}
