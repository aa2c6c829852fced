"""Summary of an array in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.runtime.kernel import Value

FIRST = 6
"""Number of leading elements that are shown."""


@dataclass(frozen=True, slots=True)
class ArraySummary:
    """Summary of an output.

    Attributes:
        name: Name of the output.
        dtype: Element type, or the kind of a value that is not an array.
        shape: Shape, or None for a value that is not an array.
        low: Smallest element; None without ordered elements.
        mean: Mean in float64; None without ordered elements.
        high: Largest element; None without ordered elements.
        first: Leading elements.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    first: tuple[Any, ...] = ()

    @classmethod
    def of(cls, name: str, value: Value) -> ArraySummary:
        """Summarise a result; NaN among the elements propagates to every number."""
        if not isinstance(value, np.ndarray):
            count = len(value) if isinstance(value, list) else 0
            return cls(name, "absent" if value is None else f"sequence of {count}", None)
        kind = element_kind(value.dtype)
        dtype = "string" if kind is ElementKind.TEXT else value.dtype.name
        first = tuple(map(_plain, value.reshape(-1)[:FIRST]))
        if kind in {ElementKind.TEXT, ElementKind.COMPLEX} or value.size == 0:
            return cls(name, dtype, value.shape, first=first)
        numbers = value.astype(np.float64)
        low, mean, high = (float(f(numbers)) for f in (np.min, np.mean, np.max))
        return cls(name, dtype, value.shape, low, mean, high, first)

    def to_json(self) -> dict[str, object]:
        """Return the summary as plain data."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": None if self.shape is None else list(self.shape),
            "min": self.low,
            "mean": self.mean,
            "max": self.high,
            "first": list(self.first),
        }

    def cells(self) -> tuple[str, ...]:
        """Return the summary as a row under `HEADERS`."""
        shape = "-" if self.shape is None else "x".join(map(str, self.shape)) or "scalar"
        numbers = ("-" if number is None else f"{number:.6g}" for number in (self.low, self.mean, self.high))
        first = " ".join(_short(item) for item in self.first)
        is_longer = self.shape is not None and np.prod(self.shape, dtype=np.int64) > FIRST
        return (self.name, self.dtype, shape, *numbers, f"{first} ..." if is_longer else first)


HEADERS = ("output", "dtype", "shape", "min", "mean", "max", "first values")
NUMERIC = frozenset({3, 4, 5})


def _plain(element: Any) -> object:
    match element:
        case bool() | np.bool_():
            return bool(element)
        case str() | bytes():
            return element if isinstance(element, str) else element.decode(errors="replace")
        case np.integer():
            return int(element)
        case complex() | np.complexfloating():
            return str(complex(element))
        case _:
            return float(element)  # floats of NumPy and ml_dtypes, and the small integers of ml_dtypes


def _short(element: object) -> str:
    return f"{element:.6g}" if isinstance(element, float) else str(element)
