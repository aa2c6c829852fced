"""exp, exp2, tanh and erf of float32 lanes.

Coefficients are minimax fits of this project (weighted least squares on Chebyshev points, each rounded).
The largest errors, over random numbers of all sizes, are stated with each function and tested.
"""

from __future__ import annotations

from typing import Final

from intarsia.native.emission.vector_math.lanes import Lanes
from intarsia.native.emission.vector_math.tables import ERF, TANH, Pieces

_EXP: Final = (
    *(1.0, 1.0, 0.4999999403953552, 0.1666652113199234),
    *(0.04166826605796814, 0.008368677459657192, 0.001382073387503624),
)
_EXP2: Final = (
    *(0.6931471824645996, 0.24022650718688965, 0.055503588169813156),
    *(0.009618067182600498, 0.001339139067567885, 0.0001546089188195765),
)
_TANH: Final = (
    *(-0.333333283662796, 0.13333110511302948, -0.05393484979867935),
    *(0.021636754274368286, -0.008023213595151901, 0.0020057959482073784),
)
_ERF: Final = (
    *(0.128379225730896, -0.3761308789253235, 0.11289447546005249, -0.02712843380868435),
    *(0.005773613695055246, -0.0013785968767479062, 0.0002929974580183625),
)
_LOG_ERFC: Final = (
    *(0.00015547087241429836, -1.1294078826904297, -0.6336032748222351, -0.10793562978506088),
    *(0.024835621938109398, -0.004024325869977474, 0.0003879945434164256),
    *(-1.2858615264121909e-05, -6.253768560782191e-07),
)
_LN2_HIGH: Final = 0.693359375  # nine bits: its products with small integers are exact
_LN2_LOW: Final = -2.12194440e-4


def exp(lanes: Lanes, x: str) -> str:
    """Emit e to the x; the error is at most 2 ULP."""
    x, is_gone = _without_what_vanishes(lanes, lanes.below(x, 89.0), -104.0)
    power, moved = lanes.nearest(lanes.mul(x, lanes.number(1.4426950408889634)))
    rest = lanes.mul_add(power, lanes.number(-_LN2_HIGH), x)
    rest = lanes.mul_add(power, lanes.number(-_LN2_LOW), rest)
    value = lanes.scaled(lanes.polynomial(rest, _EXP), power, moved)
    return lanes.choose(is_gone, lanes.number(0.0), value)


def exp2(lanes: Lanes, x: str) -> str:
    """Emit 2 to the x; the error is at most 2 ULP."""
    x, is_gone = _without_what_vanishes(lanes, lanes.below(x, 129.0), -151.0)
    power, moved = lanes.nearest(x)
    rest = lanes.sub(x, power)
    value = lanes.mul_add(lanes.polynomial(rest, _EXP2), rest, lanes.number(1.0))
    return lanes.choose(is_gone, lanes.number(0.0), lanes.scaled(value, power, moved))


def _without_what_vanishes(lanes: Lanes, x: str, limit: float) -> tuple[str, str]:
    """Replace numbers below a limit by 0, and return the mask of them.

    Their results are denormal or 0, which costs processors about a hundred cycles each; masks of attention
    produce many such numbers.
    """
    is_gone = lanes.test("olt", x, lanes.number(limit))
    return lanes.choose(is_gone, lanes.number(0.0), x), is_gone


def tanh(lanes: Lanes, x: str) -> str:
    """Emit the hyperbolic tangent; the error is at most 3 ULP."""
    if lanes.has_tables:
        return _in_pieces(lanes, x, TANH)
    size = lanes.absolute(x)
    square = lanes.mul(x, x)
    small = lanes.mul_add(lanes.mul(lanes.polynomial(square, _TANH), square), size, size)
    power = exp(lanes, lanes.mul(lanes.below(size, 20.0), lanes.number(2.0)))
    quotient = lanes.float_op("fdiv", lanes.number(2.0), lanes.add(power, lanes.number(1.0)))
    large = lanes.sub(lanes.number(1.0), quotient)
    return lanes.with_sign(lanes.choose(lanes.test("olt", size, lanes.number(0.65)), small, large), x)


def erf(lanes: Lanes, x: str) -> str:
    """Emit the error function; the error is at most 3 ULP."""
    if lanes.has_tables:
        return _in_pieces(lanes, x, ERF)
    size = lanes.absolute(x)
    square = lanes.mul(x, x)
    small = lanes.mul_add(lanes.polynomial(square, _ERF), x, x)
    power = exp(lanes, lanes.polynomial(lanes.below(size, 4.0), _LOG_ERFC))
    large = lanes.with_sign(lanes.sub(lanes.number(1.0), power), x)
    return lanes.choose(lanes.test("olt", size, lanes.number(0.92)), small, large)


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
