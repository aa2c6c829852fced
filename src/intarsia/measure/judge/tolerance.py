"""Compute tolerances of right results by rounding error analysis.

A sum of K products, computed in any order, is off by less than c u sqrt(K) times the sum of the magnitudes of
its terms, u being the unit roundoff, except with probability 2 exp(-c**2 / 2) (N. J. Higham and T. Mary, "A
New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5), 2019). Errors of operators
in a chain are taken as independent and as neither growing nor shrinking, as in a network with activations of
constant variance, so that `depth` of them add up to sqrt(depth) times one. Where terms cancel almost
entirely, this does not hold: magnitudes are taken from the output, not from the terms.

SAFETY = 16 machine epsilons = 32 unit roundoffs: 2 because both results have errors, c = 6 (an exception with
probability 3e-8 per element), and 2 to 3 for algorithms that lose more than a plain sum does (Winograd
convolution, polynomials for exp, erf and tanh).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from intarsia.measure.element_kind import ElementKind, dtype_name, element_kind

SAFETY = 16.0
ROUNDINGS = 2.0
"""Roundings to a 16-bit type within one operator: a softmax rounds its exponentials and its quotients."""

QUANTIZATION_STEP = 1 / 255
"""One step of an 8-bit type, as a fraction of its range."""

QUANTIZED_LIMIT = 0.05
"""Largest allowed difference of a quantized computation, as a fraction of max|expected|."""
_QUANTIZED_TYPES = frozenset({"int8", "uint8", "int4", "uint4", "int2", "uint2"})
"""Integers that quantization rounds to; wider ones are counts and positions, which must be exact."""

_EPS_FLOAT32 = 2.0**-23


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed difference of an element: `atol + atol_scale * max|expected| + rtol * |this expected|`.

    Attributes:
        rtol: Difference relative to the element itself: the final rounding to its type.
        atol_scale: Difference relative to the largest finite magnitude of the expected output: accumulated
            errors.
        atol: Absolute difference in units of the output: one step of an integer, or the smallest number of a
            float type.
    """

    rtol: float = 0.0
    atol_scale: float = 0.0
    atol: float = 0.0

    def allowed(self, magnitude: float, scale: float) -> float:
        """Return the allowed difference for |expected| = magnitude and max|expected| = scale."""
        return self.atol + self.atol_scale * scale + self.rtol * magnitude


EXACT = Tolerance()


@dataclass(frozen=True, slots=True)
class _FloatFormat:
    """What the error analysis needs to know of a float type.

    Attributes:
        eps: Distance from 1 to the next number.
        tiny: Difference allowed near zero: the smallest normal number where processors flush subnormal
            numbers to zero, the smallest subnormal number where they do not.
        limit: Whatever the reduction length and depth, no difference above this fraction of max|expected|
            passes (final rounding apart).
        arithmetic: Whether operators compute in this type or only store results in it.
    """

    eps: float
    tiny: float
    limit: float
    arithmetic: bool = True


_FORMATS = {
    "float64": _FloatFormat(2.0**-52, 2.0**-1022, 1e-6),
    "float32": _FloatFormat(2.0**-23, 2.0**-126, 2.0**-7),
    "float16": _FloatFormat(2.0**-10, 2.0**-24, 0.05),
    "bfloat16": _FloatFormat(2.0**-7, 2.0**-126, 0.1),
    "float8_e3m4": _FloatFormat(2.0**-4, 2.0**-6, 0.25, arithmetic=False),
    "float8_e4m3": _FloatFormat(2.0**-3, 2.0**-9, 0.25, arithmetic=False),
    "float8_e4m3b11fnuz": _FloatFormat(2.0**-3, 2.0**-13, 0.25, arithmetic=False),
    "float8_e4m3fn": _FloatFormat(2.0**-3, 2.0**-9, 0.25, arithmetic=False),
    "float8_e4m3fnuz": _FloatFormat(2.0**-3, 2.0**-10, 0.25, arithmetic=False),
    "float8_e5m2": _FloatFormat(2.0**-2, 2.0**-16, 0.25, arithmetic=False),
    "float8_e5m2fnuz": _FloatFormat(2.0**-2, 2.0**-17, 0.25, arithmetic=False),
    "float8_e8m0fnu": _FloatFormat(2.0**0, 2.0**-127, 0.25, arithmetic=False),
    "float6_e2m3fn": _FloatFormat(2.0**-3, 2.0**-3, 0.25, arithmetic=False),
    "float6_e3m2fn": _FloatFormat(2.0**-2, 2.0**-4, 0.25, arithmetic=False),
    "float4_e2m1fn": _FloatFormat(2.0**-1, 2.0**-1, 0.25, arithmetic=False),
}
_COMPONENTS = {"complex64": "float32", "complex128": "float64"}


def machine_epsilon(dtype: np.dtype[Any] | str) -> float:
    """The distance from 1 to the next number of a real or complex type.

    Raises:
        ValueError: Nothing is known about the type.
    """
    return _format(dtype_name(dtype)).eps


def smallest_normal(dtype: np.dtype[Any] | str) -> float:
    """The difference allowed near zero for a real or complex type: see `_FloatFormat.tiny`.

    Raises:
        ValueError: Nothing is known about the type.
    """
    return _format(dtype_name(dtype)).tiny


def _format(name: str) -> _FloatFormat:
    number_format = _FORMATS.get(_COMPONENTS.get(name, name))
    if number_format is None:
        raise ValueError(f"no tolerance is known for the element type {name}")
    return number_format


def tolerance_for(
    dtype: np.dtype[Any] | str, reduction_length: int = 1, depth: int = 1, quantized: bool = False
) -> Tolerance:
    """The tolerance of an output.

    Integers, booleans and strings must be equal; in a quantized computation integers may be off by one, and
    floats by what one step of an 8-bit type in each of `depth` places makes.

    Args:
        dtype: Element type of the output, or its name.
        reduction_length: Terms of the longest sum on the way to it (K of a matrix product).
        depth: Operators with rounding in the longest chain on the way to it.
        quantized: Whether values on the way are rounded to integers.

    Raises:
        ValueError: A length or depth below 1, or an element type nothing is known about.
    """
    if reduction_length < 1 or depth < 1:
        raise ValueError(f"expected at least 1, found reduction length {reduction_length} and depth {depth}")
    name = dtype_name(dtype)
    kind = element_kind(name)
    if kind is ElementKind.INTEGER:
        return Tolerance(atol=1.0) if quantized and name in _QUANTIZED_TYPES else EXACT
    if kind is ElementKind.TEXT:
        return EXACT
    return _float_tolerance(_format(name), reduction_length, depth, quantized)


def _float_tolerance(
    number_format: _FloatFormat, reduction_length: int, depth: int, quantized: bool
) -> Tolerance:
    accumulator_eps = min(number_format.eps, _EPS_FLOAT32)  # toolchains sum narrower types in float32
    accumulated = SAFETY * accumulator_eps * math.sqrt(reduction_length * depth)
    limit = number_format.limit
    if number_format.eps > _EPS_FLOAT32:  # intermediate results are rounded to the narrow type as well
        places = depth if number_format.arithmetic else depth - 1
        accumulated += ROUNDINGS * number_format.eps * math.sqrt(places)
    if quantized:
        accumulated += QUANTIZATION_STEP * math.sqrt(depth)
        limit = max(limit, QUANTIZED_LIMIT)
    return Tolerance(number_format.eps, min(accumulated, limit), number_format.tiny)
