"""Compute the difference of two arrays, without a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.fill_values import scale_of_rest
from intarsia.measure.judge.tolerance import Tolerance

Array: TypeAlias = NDArray[Any]

BLOCK = 1 << 16
"""Elements that are compared at a time: the temporaries stay in the cache for arrays of any size."""


_SURE_TYPES = (np.dtype(np.float32), np.dtype(np.float64))
_ROUNDED = 1 - 2.0**-20
"""A difference in float32 is off by 2**-24 of itself at most; the allowed one as float64 by much less."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of an array from the expected one.

    Attributes:
        max_abs: Largest difference of an element; infinite where one is NaN or infinite and the other is not
            the same, or where texts differ.
        scale: Largest finite magnitude in the expected array.
        excess: Largest difference in units of the allowed difference; above 1 is wrong.
        position: Index of that element in the flattened array; None if the arrays are equal.
        unit: Magnitude that the tolerance of that element is relative to.
    """

    max_abs: float = 0.0
    scale: float = 0.0
    excess: float = 0.0
    position: int | None = None
    unit: float = field(default=0.0, compare=False)

    @property
    def max_rel(self) -> float:
        """The largest difference relative to the scale."""
        if self.max_abs == 0:
            return 0.0
        return self.max_abs / self.scale if self.scale else math.inf


def difference(actual: Array, expected: Array, tolerance: Tolerance) -> Difference:
    """Compare two arrays of the same shape and kind of elements.

    Complex numbers are compared by real and imaginary part.
    """
    kind = element_kind(expected.dtype)
    actual, expected = actual.reshape(-1), expected.reshape(-1)
    if kind is ElementKind.COMPLEX:
        parts = f"f{expected.dtype.itemsize // 2}"
        parts_difference = difference(_parts(actual, parts), _parts(expected, parts), tolerance)
        position = None if parts_difference.position is None else parts_difference.position // 2
        return Difference(
            parts_difference.max_abs,
            parts_difference.scale,
            parts_difference.excess,
            position,
            parts_difference.unit,
        )
    return _accumulate(actual, expected, tolerance, _ARITHMETIC.get(kind, _EQUALITY))


def sure_limit(expected: Array, tolerance: Tolerance) -> float | None:
    """Return a difference up to which no element is wrong, whatever the others are; see `is_surely_within`.

    It is None where the verdict depends on all elements: where some stand apart, are not finite, or are not
    float32 or float64.
    """
    if expected.size == 0 or expected.dtype not in _SURE_TYPES or not np.isfinite(expected).all():
        return None
    flat = expected.reshape(-1)
    scale = max(_finite_max(_as_floats(block)) for _, block in _blocks(flat))
    # An array that does not stand apart from itself in two kinds of values does so from no other one.
    units = _units(flat, flat, tolerance, scale)
    return None if units.border >= 0 else _ROUNDED * tolerance.allowed(0.0, units.large)


def is_surely_within(actual: Array, expected: Array, limit: float) -> bool:
    """Return whether no element differs by more than a limit, in one pass in the type of the arrays.

    Args:
        actual: Array of the shape and type of the expected one.
        expected: Array that the limit was computed for.
        limit: A `sure_limit`. If this is true, `difference` finds an excess of 1 at most.
    """
    actual, expected = actual.reshape(-1), expected.reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        for start, block in _blocks(expected):
            errors = actual[start : start + BLOCK] - block
            # Comparisons with NaN are false, so that the negated form rejects it.
            if not (float(errors.max()) <= limit and float(errors.min()) >= -limit):
                return False
    return True


def _parts(array: Array, dtype: str) -> Array:
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False).view(dtype)


def _as_objects(block: Array) -> Array:
    return block.astype(object)


def _as_floats(block: Array) -> Array:
    return block.astype(np.float64)


def _as_integers(block: Array) -> Array:
    return block.astype(np.uint64 if block.dtype.kind == "u" else np.int64, copy=False)


def _float_errors(actual: Array, expected: Array) -> Array:
    """Return magnitudes of the differences, with 0 where both are NaN or the same infinity; never NaN."""
    errors: Array = np.abs(actual - expected)
    odd = np.flatnonzero(np.isnan(errors))
    if odd.size:
        a, e = actual[odd], expected[odd]
        errors[odd] = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0.0, math.inf)
    return errors


def _integer_errors(actual: Array, expected: Array) -> Array:
    """Return magnitudes of the differences, exact up to 2**64: the subtraction wraps around once at most."""
    larger, smaller = np.maximum(actual, expected), np.minimum(actual, expected)
    errors: Array = (larger.astype(np.uint64) - smaller.astype(np.uint64)).astype(np.float64)
    return errors


def _inequalities(actual: Array, expected: Array) -> Array:
    errors: Array = np.where((actual != expected).astype(bool), math.inf, 0.0)
    return errors


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """The arithmetic of blocks of one kind of elements.

    Attributes:
        convert: Function that converts a block to a type in which the subtraction is exact enough.
        errors: Function that returns the magnitudes of the differences of two converted blocks, as float64.
    """

    convert: Callable[[Array], Array]
    errors: Callable[[Array, Array], Array]


_EQUALITY = _Arithmetic(_as_objects, _inequalities)
_ARITHMETIC = {
    ElementKind.FLOAT: _Arithmetic(_as_floats, _float_errors),
    ElementKind.INTEGER: _Arithmetic(_as_integers, _integer_errors),
}


def _accumulate(actual: Array, expected: Array, tolerance: Tolerance, arithmetic: _Arithmetic) -> Difference:
    convert, numeric = arithmetic.convert, arithmetic is not _EQUALITY
    scale = max((_finite_max(convert(block)) for _, block in _blocks(expected) if numeric), default=0.0)
    is_float = arithmetic.convert is _as_floats
    unit_of_all = scale or 1.0  # where only zeros are expected, errors count as in an output of unit size
    units = _units(actual, expected, tolerance, scale) if is_float else _Units(unit_of_all)
    least = tolerance.allowed(0.0, min(units.large, units.small))
    max_abs, excess, position, unit = 0.0, 0.0, None, 0.0
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for start, block in _blocks(expected):
            wanted = convert(block)
            errors = arithmetic.errors(convert(actual[start : start + BLOCK]), wanted)
            block_max = float(errors.max())
            max_abs = max(max_abs, block_max)
            if block_max == 0 or (least > 0 and block_max / least <= excess):
                continue  # not even with the smallest allowance is there anything worse in here
            excesses = _excesses(errors, wanted, tolerance, units.of(wanted)) if numeric else errors
            worst = int(excesses.argmax())
            if excesses[worst] > excess:
                excess, position = float(excesses[worst]), start + worst
                unit = float(units.of(wanted[worst])) if numeric else 0.0
    return Difference(max_abs, scale, excess, position, unit)


def _units(actual: Array, expected: Array, tolerance: Tolerance, scale: float) -> _Units:
    if not (tolerance.rtol and tolerance.atol_scale and scale):
        return _Units(scale or 1.0)
    starts = range(0, expected.size, BLOCK)
    pairs = ((_as_floats(actual[i : i + BLOCK]), _as_floats(expected[i : i + BLOCK])) for i in starts)
    rest = scale_of_rest(pairs, scale, tolerance.rtol)
    if rest is None:
        return _Units(scale)
    half_the_digits = (rest or 1.0) / math.sqrt(tolerance.atol_scale)
    return _Units(scale, min(scale, half_the_digits), tolerance.rtol * scale)


@dataclass(frozen=True, slots=True)
class _Units:
    """The magnitude that the tolerance of an element is relative to.

    Attributes:
        large: Unit of elements above the border; of all elements without a border.
        small: Unit of the others: they need half of the digits only, as their separation is a guess.
        border: Magnitude that separates them, negative without a border.
    """

    large: float
    small: float = math.inf
    border: float = -1.0

    def of(self, expected: Any) -> Any:
        """Return the unit of each element, or one unit for all."""
        if self.border < 0:
            return self.large
        return np.where(np.abs(expected) > self.border, self.large, self.small)


def _blocks(array: Array) -> Iterator[tuple[int, Array]]:
    for start in range(0, array.size, BLOCK):
        yield start, array[start : start + BLOCK]


def _finite_max(block: Array) -> float:
    largest = max(abs(float(block.max())), abs(float(block.min())))
    if math.isfinite(largest):
        return largest
    finite = block[np.isfinite(block)]
    return max(abs(float(finite.max())), abs(float(finite.min()))) if finite.size else 0.0


def _excesses(errors: Array, expected: Array, tolerance: Tolerance, unit: Any) -> Array:
    """Return errors in units of the allowed error: 0 without an error, infinite where none is allowed."""
    allowed = tolerance.allowed(0.0, unit) + tolerance.rtol * np.abs(expected.astype(np.float64))
    excesses: Array = errors / allowed
    odd = np.flatnonzero(np.isnan(excesses))  # 0 / 0, and anything where the expected value is not finite
    excesses[odd] = np.where(errors[odd] > 0, math.inf, 0.0)
    return excesses
