"""exp, exp2, tanh and erf of float32 lanes.

Coefficients are minimax fits of this project (weighted least squares on Chebyshev points, rounded in turn).
The largest errors, over random numbers of all sizes, are stated with each function and tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

from intarsia.native.emission.vector_math.lanes import Lanes
from intarsia.native.emission.vector_math.tables import ERF, TANH, Pieces
from intarsia.native.log_terms import LN2_HIGH, LN2_LOW

_EXP: Final = (
    *(1.0, 1.0, 0.4999999403953552, 0.1666652113199234),
    *(0.04166826605796814, 0.008368677459657192, 0.001382073387503624),
)
_EXP2: Final = (
    *(0.6931471824645996, 0.24022650718688965, 0.055503588169813156),
    *(0.009618067182600498, 0.001339139067567885, 0.0001546089188195765),
)
_TANH: Final = (
    (
        *(1.0, 0.13681526482105255, 0.003870275104418397, 2.8042673875461332e-05),
        *(3.06560856699889e-08, -1.2247486011474074e-11),
    ),
    (1.0, 0.47014859318733215, 0.027253150939941406, 0.00039419144741259515, 1.2896326779809897e-06),
)
_ERF: Final = (
    (
        *(1.128379225730896, 0.19876700639724731, 0.05041133984923363, 0.0036409127060323954),
        *(0.0001394714054185897, -1.9293499917694135e-06, 1.9614295965197925e-08),
    ),
    (1.0, 0.5094855427742004, 0.11450966447591782, 0.01424389611929655, 0.0009381843265146017),
)
"""Numerators and denominators in x * x of f(x) / x."""
_TANH_TOP: Final = 9.02
_ERF_TOP: Final = 3.95
"""Arguments from which the functions are 1 in float32."""


def exp(lanes: Lanes, x: str) -> str:
    """Emit e to the x; the error is at most 2 ULP, and results below 2**-125 are 0."""
    x, limit = lanes.below(x, 89.0), -125.0 * log(2.0)
    x, is_gone = (x, "") if lanes.has_scale else _without_what_vanishes(lanes, x, limit)
    power, moved = lanes.nearest(lanes.mul(x, lanes.number(1 / log(2.0))))
    rest = lanes.mul_add(power, lanes.number(-LN2_HIGH), x)
    rest = lanes.mul_add(power, lanes.number(-LN2_LOW), rest)
    if lanes.has_scale:
        return _scaled_above(lanes, lanes.polynomial(rest, _EXP), power, x, limit)
    return lanes.choose(is_gone, lanes.number(0.0), _times_power(lanes, rest, _EXP, moved))


def exp2(lanes: Lanes, x: str) -> str:
    """Emit 2 to the x; the error is at most 2 ULP, and results below 2**-125 are 0."""
    x, limit, coefficients = lanes.below(x, 129.0), -125.0, (1.0, *_EXP2)
    x, is_gone = (x, "") if lanes.has_scale else _without_what_vanishes(lanes, x, limit)
    power, moved = lanes.nearest(x)
    rest = lanes.sub(x, power)
    if lanes.has_scale:
        return _scaled_above(lanes, lanes.polynomial(rest, coefficients), power, x, limit)
    return lanes.choose(is_gone, lanes.number(0.0), _times_power(lanes, rest, coefficients, moved))


def _scaled_above(lanes: Lanes, value: str, power: str, x: str, limit: float) -> str:
    """Emit `value * 2**power` where x is not below a limit, and 0 elsewhere; needs `has_scale`.

    Lanes that the instruction's mask switches off take no time, whatever their values. Three instructions
    less than with `_without_what_vanishes`: an exponential takes 0.72 of the time (Zen 5).
    """
    return lanes.scaled(value, power, lanes.test("uge", x, lanes.number(limit)))


def _times_power(lanes: Lanes, x: str, coefficients: Sequence[float], moved: str) -> str:
    """Emit a polynomial between 0.7 and 1.42 times a power of two, whose exponent is from -125 to 129.

    The polynomial is doubled, so that the other factor, 2**(power - 1), is a normal number where the result
    is infinite: it is the power with its bias, shifted into the exponent field.
    """
    doubled = lanes.polynomial(x, [2 * coefficient for coefficient in coefficients])
    return lanes.mul(doubled, lanes.power_of_bits(moved))


def _without_what_vanishes(lanes: Lanes, x: str, limit: float) -> tuple[str, str]:
    """Replace numbers below a limit by 0, and return the mask of them.

    Their results would be denormal or 0, which costs processors about a hundred cycles each; masks of
    attention produce many such numbers.
    """
    is_gone = lanes.test("olt", x, lanes.number(limit))
    return lanes.choose(is_gone, lanes.number(0.0), x), is_gone


def tanh(lanes: Lanes, x: str) -> str:
    """Emit the hyperbolic tangent; the error is at most 3 ULP with tables, and 6 without."""
    return _in_pieces(lanes, x, TANH) if lanes.has_tables else _as_quotient(lanes, x, _TANH, _TANH_TOP)


def erf(lanes: Lanes, x: str) -> str:
    """Emit the error function; the error is at most 3 ULP with tables, and 6 without."""
    return _in_pieces(lanes, x, ERF) if lanes.has_tables else _as_quotient(lanes, x, _ERF, _ERF_TOP)


def _as_quotient(lanes: Lanes, x: str, parts: tuple[Sequence[float], Sequence[float]], top: float) -> str:
    """Emit an odd function with the limit 1: x times a quotient of polynomials in x * x.

    A quotient takes a third of the time of an exponential and a polynomial for small numbers.
    """
    size = lanes.below(lanes.absolute(x), top)
    square = lanes.mul(size, size)
    above, under = (lanes.polynomial(square, coefficients) for coefficients in parts)
    quotient = lanes.float_op("fdiv", lanes.mul(size, above), under)
    return lanes.with_sign(lanes.below(quotient, 1.0), x)


def _in_pieces(lanes: Lanes, x: str, pieces: Pieces) -> str:
    """Emit an odd function with the limit 1: x times a polynomial with coefficients from a table."""
    size = lanes.below(lanes.absolute(x), pieces.top)
    place, moved = lanes.nearest(lanes.mul(size, lanes.number(1.0 / pieces.width)), 0)
    distance = lanes.mul_add(place, lanes.number(-pieces.width), size)
    numbers = lanes.bits(moved)
    *lower, value = (lanes.looked_up(row, numbers) for row in pieces.rows)
    for coefficient in reversed(lower):
        value = lanes.mul_add(value, distance, coefficient)
    return lanes.with_sign(lanes.mul(value, size), x)
