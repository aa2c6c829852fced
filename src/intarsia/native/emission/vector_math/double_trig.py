"""sin, cos, tan and erf in float64, for machines without a C library.

The largest errors over random numbers are stated with each function and tested.
"""

from __future__ import annotations

from math import factorial, inf, pi, prod, sqrt
from typing import Final

from intarsia.native.emission.types import overload, vector_type
from intarsia.native.emission.vector_math.double import Doubles, exp_double

_SIN_TERMS: Final = tuple((-1.0) ** number / factorial(2 * number + 1) for number in range(1, 10))
_COS_TERMS: Final = tuple((-1.0) ** number / factorial(2 * number) for number in range(2, 11))
_HALF_PI: Final = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""pi / 2, and what the numbers before leave of it."""
_TWO_OVER_PI: Final = (
    0x0,
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
)
"""The first 1,216 bits of 2 / pi in words, behind a word of zeros."""
_USUAL: Final = 2.0**20
"""Magnitude from which quarter turns have so many bits that pi / 2 in three numbers is not enough."""
_MAGIC: Final = 1.5 * 2.0**52
_MANTISSA: Final = 52
_UNITS_EXPONENT: Final = 1075
"""Exponent bits of numbers whose mantissa as a whole number is the number itself."""
_WIDE: Final = 192
_ERF_TERMS: Final = tuple(2.0**number / prod(range(1, 2 * number + 2, 2)) for number in range(41))
_ERF_BORDER: Final = 2.0
_ERF_ONE: Final = 6.0
"""Magnitude from which erf is 1 in float64."""
_FRACTIONS: Final = 60
"""Depth of the continued fraction of 1 - erf: its relative error is below 1e-13 from the border on."""


def sin_double(doubles: Doubles, x: str) -> str:
    """Emit the sine; the error is at most 2 ULP."""
    rest, quarter = _reduced(doubles, x)
    sine, cosine = _sine(doubles, rest), _cosine(doubles, rest)
    value = doubles.choose(_has_bit(doubles, quarter, 1), cosine, sine)
    value = _negated_where(doubles, value, quarter)
    return _where_finite(doubles, x, doubles.of_bits(_xor_sign(doubles, value, x)))


def cos_double(doubles: Doubles, x: str) -> str:
    """Emit the cosine; the error is at most 2 ULP."""
    rest, quarter = _reduced(doubles, x)
    sine, cosine = _sine(doubles, rest), _cosine(doubles, rest)
    value = doubles.choose(_has_bit(doubles, quarter, 1), sine, cosine)
    following = doubles.int_op("add", quarter, doubles.integer(1))
    return _where_finite(doubles, x, _negated_where(doubles, value, following))


def tan_double(doubles: Doubles, x: str) -> str:
    """Emit the tangent; the error is at most 4 ULP."""
    rest, quarter = _reduced(doubles, x)
    sine, cosine = _sine(doubles, rest), _cosine(doubles, rest)
    is_odd = _has_bit(doubles, quarter, 1)
    minus_cosine = doubles.builder.pure(f"fneg {doubles.floats} {cosine}")
    above, below = doubles.choose(is_odd, minus_cosine, sine), doubles.choose(is_odd, sine, cosine)
    value = doubles.op("fdiv", above, below)
    return _where_finite(doubles, x, doubles.of_bits(_xor_sign(doubles, value, x)))


def erf_double(doubles: Doubles, x: str) -> str:
    """Emit the error function; the error is at most 6 ULP.

    Below 2 it is exp(-x^2) times a series of positive terms, else 1 minus a continued fraction.
    """
    size = doubles.absolute(x)
    size = doubles.choose(doubles.test("ogt", size, doubles.number(_ERF_ONE)), doubles.number(_ERF_ONE), size)
    square = doubles.exact("fmul", size, size)
    left = _fma(doubles, size, size, doubles.builder.pure(f"fneg {doubles.floats} {square}"))
    power = exp_double(doubles, doubles.builder.pure(f"fneg {doubles.floats} {square}"))
    # What rounding has left of the square.
    power = doubles.exact("fsub", power, doubles.exact("fmul", power, left))
    series = doubles.exact("fmul", size, doubles.polynomial(square, _ERF_TERMS))
    near = doubles.exact("fmul", doubles.exact("fmul", power, series), doubles.number(2.0 / sqrt(pi)))
    # The fraction divides by its argument, which is that of the border where it is not used.
    far = doubles.choose(
        doubles.test("olt", size, doubles.number(_ERF_BORDER)), doubles.number(_ERF_BORDER), size
    )
    fraction = far
    for number in range(_FRACTIONS, 0, -1):
        share = doubles.exact("fdiv", doubles.number(number / 2.0), fraction)
        fraction = doubles.exact("fadd", far, share)
    rest = doubles.exact("fdiv", doubles.exact("fmul", power, doubles.number(1.0 / sqrt(pi))), fraction)
    beyond = doubles.exact("fsub", doubles.number(1.0), rest)
    value = doubles.choose(doubles.test("olt", size, doubles.number(_ERF_BORDER)), near, beyond)
    value = doubles.with_sign(value, x)
    return doubles.choose(doubles.test("uno", x, x), x, value)


def _reduced(doubles: Doubles, x: str) -> tuple[str, str]:
    """Emit what quarter turns leave of the magnitude, at most pi / 4, and their number modulo 4."""
    size = doubles.absolute(x)
    is_usual = doubles.test("olt", size, doubles.number(_USUAL))
    near, near_quarter = _near(doubles, doubles.choose(is_usual, size, doubles.number(0.0)))
    builder = doubles.builder
    some = is_usual
    if doubles.lanes:
        mask = f"i{doubles.lanes}"
        bits = builder.pure(f"bitcast {vector_type('i1', doubles.lanes)} {is_usual} to {mask}")
        some = builder.pure(f"icmp eq {mask} {bits}, -1")
    before, rare, after = builder.block, builder.label("large"), builder.label("after")
    builder.branch(some, after, rare)
    builder.start(rare)
    with builder.conditional():
        far, far_quarter = _far(doubles, size)
        far = doubles.choose(is_usual, near, far)
        kind = vector_type("i1", doubles.lanes)
        integers = doubles.integers
        far_quarter = builder.pure(
            f"select {kind} {is_usual}, {integers} {near_quarter}, {integers} {far_quarter}"
        )
    end = builder.block
    builder.jump(after)
    builder.start(after)
    rest = builder.value_of(f"phi {doubles.floats} [ {near}, %{before} ], [ {far}, %{end} ]")
    quarter = builder.value_of(
        f"phi {doubles.integers} [ {near_quarter}, %{before} ], [ {far_quarter}, %{end} ]"
    )
    return rest, quarter


def _near(doubles: Doubles, size: str) -> tuple[str, str]:
    """Emit the reduction of numbers below 2^20."""
    magic = doubles.number(_MAGIC)
    moved = doubles.exact("fadd", doubles.exact("fmul", size, doubles.number(2.0 / pi)), magic)
    turns = doubles.exact("fsub", magic, moved)  # negative
    rest = size
    for part in _HALF_PI:
        # The first one is exact: both numbers are multiples of 2^-52, and the rest is below 1.
        rest = _fma(doubles, turns, doubles.number(part), rest)
    return rest, doubles.bits(moved)


def _far(doubles: Doubles, size: str) -> tuple[str, str]:
    """Emit the reduction of large numbers by the bits of 2 / pi that matter (Payne and Hanek 1983).

    With x = m 2^e, bits of 2 / pi of a weight above 2^(1 - e) give whole turns. 192 bits from there on times
    m are x times 2 / pi modulo 4, with 2 bits before the point.
    """
    builder, integers = doubles.builder, doubles.integers
    bits = doubles.bits(size)
    biased = doubles.int_op("lshr", bits, doubles.integer(_MANTISSA))
    mantissa = doubles.int_op("and", bits, doubles.integer(2**_MANTISSA - 1))
    mantissa = doubles.int_op("or", mantissa, doubles.integer(2**_MANTISSA))
    # Bit k of 2 / pi, from 1 on, is at k + 63 in the table; the window begins with bit e - 1.
    first = doubles.int_op("add", biased, doubles.integer(62 - _UNITS_EXPONENT))
    word = doubles.int_op("lshr", first, doubles.integer(6))
    shift = doubles.int_op("and", first, doubles.integer(63))
    words = [_word(doubles, doubles.int_op("add", word, doubles.integer(number))) for number in range(4)]
    wide = vector_type(f"i{_WIDE}", doubles.lanes)

    def widened(value: str, by: int) -> str:
        number = builder.pure(f"zext {integers} {value} to {wide}")
        return builder.pure(f"shl {wide} {number}, {_wide_number(doubles, by)}") if by else number

    window = "0" if not doubles.lanes else "zeroinitializer"
    back = doubles.int_op("sub", doubles.integer(63), shift)
    for number in range(3):
        high = doubles.int_op("shl", words[number], shift)
        low = doubles.int_op("lshr", doubles.int_op("lshr", words[number + 1], doubles.integer(1)), back)
        part = widened(doubles.int_op("or", high, low), 128 - 64 * number)
        window = builder.pure(f"or {wide} {window}, {part}")
    turns = builder.pure(f"mul {wide} {window}, {widened(mantissa, 0)}")

    def piece(begin: int, width: int, kind: str) -> str:
        """Emit some bits of the fraction as a number."""
        moved = builder.pure(f"lshr {wide} {turns}, {_wide_number(doubles, begin)}")
        number = builder.pure(f"trunc {wide} {moved} to {integers}")
        number = doubles.int_op("shl", number, doubles.integer(64 - width))
        shifted = doubles.int_op("ashr" if kind == "sitofp" else "lshr", number, doubles.integer(64 - width))
        return builder.pure(f"{kind} {integers} {shifted} to {doubles.floats}")

    # Fractions from 1/2 on are those of the next quarter, less 1: their first bit is a sign.
    parts = [
        doubles.exact(
            "fmul", piece(190 - 32 * (number + 1), 32, kind), doubles.number(2.0 ** (-32 * (number + 1)))
        )
        for number, kind in enumerate(("sitofp", "uitofp", "uitofp", "uitofp"))
    ]
    total = doubles.exact("fadd", parts[0], parts[1])
    error = doubles.exact("fsub", parts[1], doubles.exact("fsub", total, parts[0]))
    low = doubles.exact("fadd", error, doubles.exact("fadd", parts[2], parts[3]))
    fraction = doubles.exact("fadd", total, low)
    low = doubles.exact("fsub", low, doubles.exact("fsub", fraction, total))
    rest = doubles.exact("fmul", fraction, doubles.number(_HALF_PI[1]))
    rest = _fma(doubles, low, doubles.number(_HALF_PI[0]), rest)
    rest = _fma(doubles, fraction, doubles.number(_HALF_PI[0]), rest)
    top = builder.pure(f"lshr {wide} {turns}, {_wide_number(doubles, 189)}")
    quarter = builder.pure(f"trunc {wide} {top} to {integers}")
    rounded = doubles.int_op("lshr", doubles.int_op("add", quarter, doubles.integer(1)), doubles.integer(1))
    return rest, rounded


def _word(doubles: Doubles, index: str) -> str:
    """Emit a word of the table of 2 / pi by its number."""
    builder, integers = doubles.builder, doubles.integers
    value = doubles.integer(_TWO_OVER_PI[-1])
    for number, word in enumerate(_TWO_OVER_PI[:-1]):
        is_there = builder.pure(f"icmp eq {integers} {index}, {doubles.integer(number)}")
        mask = vector_type("i1", doubles.lanes)
        value = builder.pure(
            f"select {mask} {is_there}, {integers} {doubles.integer(word)}, {integers} {value}"
        )
    return value


def _wide_number(doubles: Doubles, value: int) -> str:
    if not doubles.lanes:
        return str(value)
    return f"<{', '.join([f'i{_WIDE} {value}'] * doubles.lanes)}>"


def _sine(doubles: Doubles, rest: str) -> str:
    square = doubles.exact("fmul", rest, rest)
    cubic = doubles.exact("fmul", rest, square)
    return doubles.mul_add(cubic, doubles.polynomial(square, _SIN_TERMS), rest)


def _cosine(doubles: Doubles, rest: str) -> str:
    square = doubles.exact("fmul", rest, rest)
    half = doubles.exact("fmul", square, doubles.number(0.5))
    high = doubles.exact("fsub", doubles.number(1.0), half)
    left = doubles.exact("fsub", doubles.exact("fsub", doubles.number(1.0), high), half)
    quartic = doubles.exact("fmul", square, square)
    low = doubles.mul_add(quartic, doubles.polynomial(square, _COS_TERMS), left)
    return doubles.exact("fadd", high, low)


def _has_bit(doubles: Doubles, number: str, bit: int) -> str:
    masked = doubles.int_op("and", number, doubles.integer(bit))
    return doubles.builder.pure(f"icmp ne {doubles.integers} {masked}, {doubles.integer(0)}")


def _negated_where(doubles: Doubles, value: str, quarter: str) -> str:
    """Emit a number with another sign where the second bit of a number of quarters is set."""
    sign = doubles.int_op("shl", quarter, doubles.integer(62))
    sign = doubles.int_op("and", sign, doubles.integer(-(2**63)))
    return doubles.of_bits(doubles.int_op("xor", doubles.bits(value), sign))


def _xor_sign(doubles: Doubles, value: str, x: str) -> str:
    sign = doubles.int_op("and", doubles.bits(x), doubles.integer(-(2**63)))
    return doubles.int_op("xor", doubles.bits(value), sign)


def _where_finite(doubles: Doubles, x: str, value: str) -> str:
    """Emit a value, NaN where x is infinite or NaN."""
    is_finite = doubles.test("olt", doubles.absolute(x), doubles.number(inf))
    return doubles.choose(is_finite, value, doubles.exact("fsub", x, x))


def _fma(doubles: Doubles, left: str, right: str, more: str) -> str:
    """Emit `left * right + more`, rounded once."""
    kind = overload("double", doubles.lanes)
    arguments = ", ".join(f"{doubles.floats} {text}" for text in (left, right, more))
    return doubles.builder.call(doubles.floats, f"llvm.fma.{kind}", arguments)
