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
"""Limits of all ranges: beyond a million, engines that compute in 32 bits fail on unrealistic inputs."""

_STARTS: Final = (0, 1, 2, 4, 8, 16, 64, 256, -1)
_MOST_STARTS: Final = 64


@dataclass(frozen=True, slots=True)
class BoundedValue:
    """An operator's argument with the bounds that it must keep.

    Attributes:
        value: Expression of the argument.
        least: Least valid value.
        most: Largest valid value.
    """

    value: Expr
    least: int
    most: int


def meeting_ranges(limits: Mapping[Var, Range], bounded: Sequence[BoundedValue]) -> dict[Var, Range] | None:
    """Return the widest ranges of inputs for which all bounded values provably keep their bounds.

    Args:
        limits: Inputs with the ranges that they must keep.
        bounded: Values with bounds. All other inputs have all values of 32 bits.

    Returns:
        Ranges by input; None if no starting point keeps all bounds.
    """

    def fits(ranges: Mapping[Var, Range]) -> bool:
        intervals = _intervals(ranges)
        return all(_is_within(intervals, item) for item in bounded)

    start = next((ranges for ranges in _starts(limits, bounded) if fits(ranges)), None)
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
    """Return the range of one input, as wide as the ranges of the others allow."""
    low, high = ranges[param]
    up = _largest(lambda size: high + size <= limit[1] and fits({**ranges, param: (low, high + size)}))
    wider = low, high + up
    down = _largest(lambda size: low - size >= limit[0] and fits({**ranges, param: (low - size, wider[1])}))
    return low - down, wider[1]


def can_be_met(limits: Mapping[Var, Range], item: BoundedValue) -> bool:
    """Return whether some starting point provably keeps a value within its bounds."""
    starts = _starts(limits, [item])
    return any(_is_within(_intervals(ranges), item) for ranges in starts)


def _starts(limits: Mapping[Var, Range], bounded: Sequence[BoundedValue]) -> Iterator[dict[Var, Range]]:
    """Yield starting points for the search: small numbers, and constants of the program."""
    values = dict.fromkeys(_STARTS)
    for item in bounded:
        for data in _integer_constants(item.value):
            ends = int(np.min(data)), int(np.max(data))
            values.update(dict.fromkeys((*ends, -ends[0], -ends[1], ends[1] + 1)))
    for number in list(values)[:_MOST_STARTS]:
        ranges = {param: min(max(number, least), most) for param, (least, most) in limits.items()}
        yield {param: (start, start) for param, start in ranges.items()}


def _integer_constants(expr: Expr) -> Iterator[Array]:
    """Yield the integer constants that an expression is computed from through integers only."""
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
    """Return the largest number that fits, by doubling and bisection.

    0 fits, and all numbers below one that fits.
    """
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


def _is_within(intervals: IntegerRanges, item: BoundedValue) -> bool:
    interval = intervals.interval(item.value)
    return interval is not None and item.least <= interval[0] and interval[1] <= item.most
