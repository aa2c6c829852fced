"""Ranges of inputs for which computed indices lie within their tables.

    Gather(table, ids * 2 + 1)      a table of 30 rows: ids from 0 to 14

Interval arithmetic says which indices ranges of inputs lead to, whatever operators compute them. Starting
from numbers that are right, all ranges are widened together, and then each as far as it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import Constant, Expr, Var, children
from intarsia.runtime.kernel import Array
from intarsia.toolchain.openvino.integer_ranges import IntegerRanges, type_interval
from intarsia.toolchain.openvino.integer_rules import Interval

Range = tuple[int, int]
"""The least and the largest number."""

WIDEST: Final[Range] = (-(2**20), 2**20)
"""Ranges end here: beyond a million, engines that compute in 32 bits fail on what no program is given."""

_STARTS: Final = (0, 1, 2, 4, 8, 16, 64, 256, -1)
_MOST_STARTS: Final = 64


@dataclass(frozen=True, slots=True)
class Place:
    """An argument of an operator that has to lie within bounds.

    Attributes:
        value: The argument.
        least: Its least right value.
        most: Its largest right value.
    """

    value: Expr
    least: int
    most: int


def meeting_ranges(limits: Mapping[Var, Range], places: Sequence[Place]) -> dict[Var, Range] | None:
    """The widest ranges of inputs for which all places are known to be within their bounds.

    Args:
        limits: Inputs with ranges that are not left.
        places: What has to lie within bounds. All other inputs have all values of 32 bits.

    Returns:
        Ranges by input; None if no start suits all places together.
    """

    def fits(ranges: Mapping[Var, Range]) -> bool:
        intervals = _intervals(ranges)
        return all(_is_within(intervals, place) for place in places)

    start = next((ranges for ranges in _starts(limits, places) if fits(ranges)), None)
    if start is None:
        return None
    width = _largest(lambda size: fits(_widened(start, limits, size)))
    ranges = _widened(start, limits, width)
    for param in limits:
        ranges[param] = _widest(ranges, param, limits[param], fits)
    return ranges


def _widest(
    ranges: Mapping[Var, Range], param: Var, limit: Range, fits: Callable[[Mapping[Var, Range]], bool]
) -> Range:
    """The range of one input, as wide as others allow."""
    low, high = ranges[param]
    up = _largest(lambda size: high + size <= limit[1] and fits({**ranges, param: (low, high + size)}))
    wider = low, high + up
    down = _largest(lambda size: low - size >= limit[0] and fits({**ranges, param: (low - size, wider[1])}))
    return low - down, wider[1]


def can_be_met(limits: Mapping[Var, Range], place: Place) -> bool:
    """Whether a number is found for which a place is known to be within its bounds."""
    starts = _starts(limits, [place])
    return any(_is_within(_intervals(ranges), place) for ranges in starts)


def _starts(limits: Mapping[Var, Range], places: Sequence[Place]) -> Iterator[dict[Var, Range]]:
    """Single numbers that indices may be computed of: small ones, and constants of the program."""
    values = dict.fromkeys(_STARTS)
    for place in places:
        for data in _integer_constants(place.value):
            ends = int(np.min(data)), int(np.max(data))
            values.update(dict.fromkeys((*ends, -ends[0], -ends[1], ends[1] + 1)))
    for number in list(values)[:_MOST_STARTS]:
        ranges = {param: min(max(number, least), most) for param, (least, most) in limits.items()}
        yield {param: (start, start) for param, start in ranges.items()}


def _integer_constants(expr: Expr) -> Iterator[Array]:
    """Constants that integers are computed of; what lies behind other numbers is no arithmetic of indices."""
    waiting, seen = [expr], {expr}
    while waiting:
        value = waiting.pop()
        if isinstance(value, Constant) and value.data.dtype.kind in "iu" and value.data.size:
            yield value.data
        sources = [item for item in children(value) if item not in seen and type_interval(item) is not None]
        seen.update(sources)
        waiting += sources


def _widened(start: Mapping[Var, Range], limits: Mapping[Var, Range], size: int) -> dict[Var, Range]:
    return {param: (low, min(low + size, limits[param][1])) for param, (low, _) in start.items()}


def _largest(fits: Callable[[int], bool]) -> int:
    """The largest number of which something is true that is true of 0 and of all numbers below it."""
    low, high = 0, 1
    while high <= WIDEST[1] and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _intervals(ranges: Mapping[Var, Range]) -> IntegerRanges:
    limits: dict[Expr, Interval] = dict(ranges.items())
    return IntegerRanges(limits=limits)


def _is_within(intervals: IntegerRanges, place: Place) -> bool:
    interval = intervals.interval(place.value)
    return interval is not None and place.least <= interval[0] and interval[1] <= place.most
