"""sin and cos of float32 lanes; coefficients as in `vector_math_exp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from intarsia.native.emission.types import constant, vector_type
from intarsia.native.emission.vector_math.lanes import Lanes

_SIN: Final = (-0.1666666716337204, 0.008333379402756691, -0.00019852977129630744, 2.830644234563806e-06)
_COS: Final = (0.04166664555668831, -0.0013887302484363317, 2.443088305881247e-05)
_HALF_PI_HIGH: Final = 1.570796325802803  # 27 bits: its products with integers below 2**26 are exact
_HALF_PI_LOW: Final = 9.920935796805404e-10
_LARGEST: Final = 1.0e8
"""Magnitude beyond which the reduction needs more digits of pi; another function computes it there."""


def sin(lanes: Lanes, x: str, of_large: Callable[[], str]) -> str:
    """Emit the sine; the error is at most 2 ULP.

    Args:
        lanes: Emitter of instructions.
        x: Numbers.
        of_large: Function that emits the sines of large numbers.
    """
    is_tiny = lanes.test("olt", lanes.absolute(x), lanes.number(2.0**-13))
    return lanes.choose(is_tiny, x, _with_large(lanes, x, of_large, 0))  # keeps the sign of zero


def cos(lanes: Lanes, x: str, of_large: Callable[[], str]) -> str:
    """Emit the cosine; the error is at most 2 ULP; arguments are those of `sin`."""
    return _with_large(lanes, x, of_large, 1)


def _with_large(lanes: Lanes, x: str, of_large: Callable[[], str], turn: int) -> str:
    builder = lanes.builder
    is_large = lanes.test("ogt", lanes.absolute(x), lanes.number(_LARGEST))
    usual = _reduced(lanes, x, turn)
    some = is_large
    if lanes.lanes:
        bits = builder.pure(f"bitcast {vector_type('i1', lanes.lanes)} {is_large} to i{lanes.lanes}")
        some = builder.pure(f"icmp ne i{lanes.lanes} {bits}, 0")
    before, rare, after = builder.block, builder.label("large"), builder.label("after")
    builder.branch(some, rare, after)
    builder.start(rare)
    with builder.conditional():
        exact = lanes.choose(is_large, of_large(), usual)
    rare = builder.block  # other blocks may have begun meanwhile
    builder.jump(after)
    builder.start(after)
    return builder.value_of(f"phi {lanes.floats} [ {usual}, %{before} ], [ {exact}, %{rare} ]")


def _reduced(lanes: Lanes, x: str, turn: int) -> str:
    """Reduce to a quarter turn in float64, then evaluate polynomials in float32."""
    builder = lanes.builder
    doubles, longs = vector_type("double", lanes.lanes), vector_type("i64", lanes.lanes)

    def number(value: float) -> str:
        return constant(value, "double", lanes.lanes)

    wide = builder.pure(f"fpext {lanes.floats} {x} to {doubles}")
    turns = builder.pure(f"fmul {doubles} {wide}, {number(0.6366197723675814)}")
    moved = builder.pure(f"fadd {doubles} {turns}, {number(6755399441055744.0)}")
    whole = builder.pure(f"fsub {doubles} {moved}, {number(6755399441055744.0)}")
    for part in (_HALF_PI_HIGH, _HALF_PI_LOW):
        product = builder.pure(f"fmul {doubles} {whole}, {number(part)}")
        wide = builder.pure(f"fsub {doubles} {wide}, {product}")
    rest = builder.pure(f"fptrunc {doubles} {wide} to {lanes.floats}")
    bits = builder.pure(f"bitcast {doubles} {moved} to {longs}")
    quarter = builder.pure(f"trunc {longs} {bits} to {lanes.integers}")
    return _of_quarter(lanes, rest, lanes.int_op("add", quarter, lanes.integer(turn)))


def _of_quarter(lanes: Lanes, rest: str, quarter: str) -> str:
    square = lanes.mul(rest, rest)
    cubic = lanes.mul(lanes.polynomial(square, _SIN), square)
    sine = lanes.mul_add(cubic, rest, rest)
    quartic = lanes.mul(lanes.polynomial(square, _COS), square)
    tail = lanes.mul(lanes.add(quartic, lanes.number(-0.5)), square)
    cosine = lanes.add(tail, lanes.number(1.0))
    odd = lanes.int_op("and", quarter, lanes.integer(1))
    is_odd = lanes.builder.pure(f"icmp ne {lanes.integers} {odd}, {lanes.integer(0)}")
    value = lanes.choose(is_odd, cosine, sine)
    sign = lanes.int_op("shl", lanes.int_op("and", quarter, lanes.integer(2)), lanes.integer(30))
    return lanes.of_bits(lanes.int_op("xor", lanes.bits(value), sign))
