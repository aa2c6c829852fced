"""Interval arithmetic of operators: bounds of a result from bounds of the arguments.

Each rule holds for exact arithmetic. `integer_ranges` discards an interval that exceeds the element type,
because the operator then wraps around.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

Interval: TypeAlias = tuple[float, float]
"""Smallest and largest value, both included; of integers they are `int`, or infinite if nothing is known."""

_MOST_FACTORS: Final = 64
"""A product of more factors is left unbounded: 64 factors of 2 already exceed every integer type."""


def union(intervals: Iterable[Interval | None]) -> Interval | None:
    """The smallest interval that contains all that are known; None if none is."""
    known = [item for item in intervals if item is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def largest(interval: Interval) -> float:
    """The largest magnitude of an interval."""
    return max(abs(interval[0]), abs(interval[1]))


Rule: TypeAlias = Callable[[list[Interval], int], Interval | None]


def _sum(items: list[Interval], _count: int) -> Interval:
    return sum(low for low, _ in items), sum(high for _, high in items)


def _difference(items: list[Interval], _count: int) -> Interval | None:
    return (items[0][0] - items[1][1], items[0][1] - items[1][0]) if len(items) == 2 else None


def _product(items: list[Interval], _count: int) -> Interval | None:
    if len(items) != 2:
        return None
    corners = [left * right for left in items[0] for right in items[1]]
    return None if any(map(math.isnan, corners)) else (min(corners), max(corners))


def _total(items: list[Interval], count: int) -> Interval:
    low, high = items[0]
    return min(0, low * count), max(0, high * count)  # 0: an axis of unknown length may be empty


def _factors(items: list[Interval], count: int) -> Interval | None:
    low, high = items[0]
    if not isinstance(low, int) or not isinstance(high, int):
        return None
    if count > _MOST_FACTORS and largest(items[0]) > 1:
        return None
    most = max(1, int(largest(items[0])) ** min(count, _MOST_FACTORS))
    return (0 if low >= 0 else -most), most


def _squares(items: list[Interval], count: int) -> Interval:
    return 0, largest(items[0]) ** 2 * count


def _magnitude(items: list[Interval], _count: int) -> Interval:
    return 0, largest(items[0])


def _quotient(items: list[Interval], _count: int) -> Interval | None:
    low, high = items[0]
    if not all(isinstance(bound, int) for item in items for bound in item):
        smallest = max(items[-1][0], -items[-1][1])
        if smallest > 0 and smallest == items[-1][0]:
            corners = [bound / divisor for bound in items[0] for divisor in items[-1]]
            return min(corners), max(corners)
        return (-largest(items[0]) / smallest, largest(items[0]) / smallest) if smallest > 0 else None
    least, most = items[-1]
    if low >= 0 and least > 0:
        return low // most, high // least
    return (0, high) if low >= 0 and least >= 0 else (-largest(items[0]), largest(items[0]))


def _remainder(items: list[Interval], _count: int) -> Interval:
    size = largest(items[-1])
    if size > 0 and isinstance(size, int):
        size -= 1  # of integers it is smaller than the divisor
    is_positive = min(items[0][0], items[-1][0]) >= 0
    return (0, min(size, items[0][1])) if is_positive else (-size, size)


def _rounded(function: Callable[[float], int], interval: Interval) -> Interval:
    low, high = (function(bound) if math.isfinite(bound) else bound for bound in interval)
    return low, high


def _largest_of(items: list[Interval], _count: int) -> Interval:
    return max(low for low, _ in items), max(high for _, high in items)


def _smallest_of(items: list[Interval], _count: int) -> Interval:
    return min(low for low, _ in items), min(high for _, high in items)


def _clipped(items: list[Interval], _count: int) -> Interval | None:
    """The result is the argument or one of the bounds; with both bounds it lies between them."""
    if len(items) < 3:
        return union(items)
    value, least, most = items
    low, high = (min(max(value[end], least[end]), most[end]) for end in (0, 1))
    return low, high


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "Add": _sum,
        "Sum": _sum,
        "Sub": _difference,
        "Mul": _product,
        "Div": _quotient,
        "Mod": _remainder,
        "Neg": lambda items, _: (-items[0][1], -items[0][0]),
        "Abs": _magnitude,
        "Sign": lambda items, _: (-1 if items[0][0] < 0 else 0, 1),
        "Relu": lambda items, _: (0, max(0, items[0][1])),
        "Clip": _clipped,
        **dict.fromkeys(("ReduceSum", "CumSum"), _total),
        "ReduceProd": _factors,
        "ReduceL1": lambda items, count: (0, largest(items[0]) * count),
        "ReduceSumSquare": _squares,
        **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceMean"), lambda items, _: items[0]),
        "Ceil": lambda items, _: _rounded(math.ceil, items[0]),
        "Floor": lambda items, _: _rounded(math.floor, items[0]),
        "Round": lambda items, _: _rounded(round, items[0]),
        "Log": lambda *_: (-745, 710),  # of the smallest and the largest float64
        "Sqrt": lambda items, _: (0, math.sqrt(max(0.0, items[0][1]))),
        "Max": _largest_of,
        "Min": _smallest_of,
        "Range": lambda items, _: union(items),
    }
)
"""Intervals of results by operator, from those of the arguments and the number of reduced elements."""
