"""What the user says of the sizes of one dimension."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias

from intarsia.ir import DimRange
from intarsia.support.errors import UsageError

SizesArgument: TypeAlias = "int | tuple[int, int] | Mapping[int, float] | str | DimSizes"
"""What callers give for a dimension: 8, (1, 8), {16: 0.5, 128: 0.5}, or text as on the command line."""

HOW: Final = "write batch=8, batch=1..8, seq=1..512@log, rows=32..640/32 or seq=16:0.5,128:0.4,512:0.1"

_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)(?:/(\d+))?(@log)?")
_WEIGHTED: Final = re.compile(r"(\d+):(\d+(?:\.\d*)?|\.\d+)")
_LOG_FROM: Final = 16
"""A range whose end is so many times its start is sampled by ratios rather than by differences."""


@dataclass(frozen=True, slots=True)
class DimSizes:
    """The sizes of a dimension that calls will have.

    Attributes:
        range: Smallest and largest size.
        multiple: Sizes are multiples of this number.
        is_log: Whether sizes are spread evenly by their ratios, rather than by their differences; None where
            the range decides.
        weights: Share of calls of each size; empty where only the range is known.
    """

    range: DimRange
    multiple: int = 1
    is_log: bool | None = None
    weights: tuple[tuple[int, float], ...] = ()

    @classmethod
    def read(cls, name: str, value: SizesArgument) -> Self:
        """Read what a caller gives for a dimension.

        Args:
            name: Name of the dimension, for errors.
            value: A number, a pair of the smallest and largest size, shares by size, or text.

        Raises:
            UsageError: It is none of these, or no size is left.
        """
        match value:
            case cls():
                return value
            case bool():
                pass
            case int():
                return cls._of(name, value, value)
            case str():
                return cls._parse(name, value)
            case Mapping() if value and all(_is_size(size) for size in value):
                return cls._weighted(name, tuple(value.items()))
            case (int() as low, int() as high):
                return cls._of(name, low, high)
        raise UsageError(
            f"dimension {name!r} has the sizes {value!r}",
            help=f"in Python: 8, (1, 8), {{1: 0.9, 8: 0.1}}; as text: {HOW}",
        )

    @classmethod
    def _parse(cls, name: str, text: str) -> Self:
        if match := _RANGE.fullmatch(text.strip()):
            low, high, multiple, log = match.groups()
            return cls._of(name, int(low), int(high), int(multiple or 1), True if log else None)
        entries = [entry.strip() for entry in text.split(",")]
        if all(_WEIGHTED.fullmatch(entry) for entry in entries):
            pairs = (entry.split(":") for entry in entries)
            return cls._weighted(name, tuple((int(size), float(weight)) for size, weight in pairs))
        if all(entry.isascii() and entry.isdigit() for entry in entries):
            return cls._weighted(name, tuple((int(entry), 1.0) for entry in entries))
        raise UsageError(f"dimension {name!r} has the sizes {text!r}", help=HOW)

    @classmethod
    def _of(cls, name: str, low: int, high: int, multiple: int = 1, is_log: bool | None = None) -> Self:
        if multiple < 1 or not 0 <= low <= high or high // multiple * multiple < low:
            step = f" in multiples of {multiple}" if multiple != 1 else ""
            raise UsageError(
                f"dimension {name!r} is to be {low} to {high}{step}: there is no such size", help=HOW
            )
        return cls(DimRange(low, high), multiple, is_log)

    @classmethod
    def _weighted(cls, name: str, pairs: tuple[tuple[int, float], ...]) -> Self:
        sizes = [size for size, _ in pairs]
        total = sum(weight for _, weight in pairs)
        if len(set(sizes)) != len(sizes):
            raise UsageError(f"dimension {name!r} has a size twice", help=HOW)
        if not all(0 < weight < math.inf for _, weight in pairs):
            raise UsageError(f"dimension {name!r} has a share that is no positive number", help=HOW)
        return cls(
            DimRange(min(sizes), max(sizes)),
            weights=tuple((size, weight / total) for size, weight in sorted(pairs)),
        )

    @property
    def is_fixed(self) -> bool:
        """Whether there is one size only."""
        return self.range.low == self.range.high

    def widened(self, size: int) -> DimSizes:
        """Return the sizes with one more in their range."""
        return replace(self, range=DimRange(min(size, self.range.low), max(size, self.range.high)))

    def timed(self) -> tuple[tuple[int, float], ...]:
        """Return the sizes that are timed with their shares: those given, or up to three across the range."""
        if self.weights:
            return self.weights
        sizes = sorted({self._nearest(size) for size in self._across()})
        return tuple((size, 1 / len(sizes)) for size in sizes)

    def checked(self) -> Iterator[int]:
        """Yield sizes at which mistakes show: the ends of the range, and sizes around those of tiles."""
        low, high = self.range.low, self.range.high
        for size in (low, high, low + 1, 2, 3, 7, 8, 9, 17, 31, 33, 97, high - 1):
            if size in self.range and self._nearest(size) == size:
                yield size

    def _across(self) -> tuple[float, ...]:
        low, high = self.range.low, self.range.high
        is_log = self.is_log if self.is_log is not None else low > 0 and high >= _LOG_FROM * low
        middle = math.sqrt(max(low, 1) * high) if is_log else (low + high) / 2
        return low, middle, high

    def _nearest(self, size: float) -> int:
        """Return the nearest size of the range that is a multiple."""
        steps = round(size / self.multiple)
        first, last = -(-self.range.low // self.multiple), self.range.high // self.multiple
        return min(max(steps, first), last) * self.multiple


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
