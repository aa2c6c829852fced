"""How far one array is from another: the numbers, without judging them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.tolerance import Tolerance

Array: TypeAlias = NDArray[Any]

BLOCK = 1 << 16
"""Elements looked at together: the temporaries stay in the cache whatever the size of the arrays."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far an array is from the expected one.

    Attributes:
        max_abs: Largest difference of an element; infinite where one is NaN or infinite and the other is not
            the same, or where texts differ.
        scale: Largest finite magnitude in the expected array.
        excess: Largest difference in units of the allowed one: above 1 is wrong.
        position: Where that is, as an index into the flattened array; None if the arrays are equal.
    """

    max_abs: float = 0.0
    scale: float = 0.0
    excess: float = 0.0
    position: int | None = None

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
        found = difference(_parts(actual, parts), _parts(expected, parts), tolerance)
        position = None if found.position is None else found.position // 2
        return Difference(found.max_abs, found.scale, found.excess, position)
    return _accumulate(actual, expected, tolerance, _ARITHMETIC.get(kind, _EQUALITY))


def _parts(array: Array, dtype: str) -> Array:
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False).view(dtype)


def _as_objects(block: Array) -> Array:
    return block.astype(object)


def _as_floats(block: Array) -> Array:
    return block.astype(np.float64)


def _as_integers(block: Array) -> Array:
    return block.astype(np.uint64 if block.dtype.kind == "u" else np.int64, copy=False)


def _float_errors(actual: Array, expected: Array) -> Array:
    """Magnitudes of the differences, with 0 where both are NaN or the same infinity and never NaN."""
    errors: Array = np.abs(actual - expected)
    odd = np.flatnonzero(np.isnan(errors))
    if odd.size:
        a, e = actual[odd], expected[odd]
        errors[odd] = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0.0, math.inf)
    return errors


def _integer_errors(actual: Array, expected: Array) -> Array:
    """Magnitudes of the differences: exact up to 2**64, since the subtraction wraps around once at most."""
    larger, smaller = np.maximum(actual, expected), np.minimum(actual, expected)
    errors: Array = (larger.astype(np.uint64) - smaller.astype(np.uint64)).astype(np.float64)
    return errors


def _inequalities(actual: Array, expected: Array) -> Array:
    errors: Array = np.where((actual != expected).astype(bool), math.inf, 0.0)
    return errors


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """How blocks of one kind of elements are subtracted.

    Attributes:
        convert: Makes a block of a type in which the subtraction is exact enough.
        errors: The magnitudes of the differences of two converted blocks, as float64.
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
    unit = scale or 1.0  # where only zeros are expected, errors count as in an output of unit size
    least = tolerance.allowed(0.0, unit)
    max_abs, excess, position = 0.0, 0.0, None
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for start, block in _blocks(expected):
            wanted = convert(block)
            errors = arithmetic.errors(convert(actual[start : start + BLOCK]), wanted)
            block_max = float(errors.max())
            max_abs = max(max_abs, block_max)
            if block_max == 0 or (least > 0 and block_max / least <= excess):
                continue  # not even with the smallest allowance is there anything worse in here
            excesses = _excesses(errors, wanted, tolerance, unit) if numeric else errors
            worst = int(excesses.argmax())
            if excesses[worst] > excess:
                excess, position = float(excesses[worst]), start + worst
    return Difference(max_abs, scale, excess, position)


def _blocks(array: Array) -> Iterator[tuple[int, Array]]:
    for start in range(0, array.size, BLOCK):
        yield start, array[start : start + BLOCK]


def _finite_max(block: Array) -> float:
    largest = max(abs(float(block.max())), abs(float(block.min())))
    if math.isfinite(largest):
        return largest
    finite = block[np.isfinite(block)]
    return max(abs(float(finite.max())), abs(float(finite.min()))) if finite.size else 0.0


def _excesses(errors: Array, expected: Array, tolerance: Tolerance, scale: float) -> Array:
    """Errors in units of the allowed error: 0 where there is no error, infinite where none is allowed."""
    allowed = tolerance.allowed(0.0, scale) + tolerance.rtol * np.abs(expected.astype(np.float64))
    excesses: Array = errors / allowed
    odd = np.flatnonzero(np.isnan(excesses))  # 0 / 0, and anything where the expected value is not finite
    excesses[odd] = np.where(errors[odd] > 0, math.inf, 0.0)
    return excesses
