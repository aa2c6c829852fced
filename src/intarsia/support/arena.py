"""Offsets in one block of memory for buffers, of which those that are never live together share bytes.

Both planners put each buffer into the smallest gap that fits (best fit). They differ in the order:

* `plan_arena_by_time` goes through the steps once. It is for blocks of tens of thousands of steps.
* `plan_arena_by_size` places the largest buffers first, which wastes less. Its time grows with the number of
  steps for which each buffer lives.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""Offset and size in bytes."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer's size in bytes, and the first and last step (both included) during which it holds a value."""

    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """Where each buffer starts, and how many bytes the whole block has."""

    offsets: tuple[int, ...]
    size: int


def plan_arena_by_time(lifetimes: Sequence[Lifetime], alignment: int) -> ArenaPlan:
    """Place the buffers in the order in which they begin, each into the smallest free gap, else at the end.

    No two buffers that are live at one step overlap; every offset is a multiple of the alignment, and no two
    buffers that are live at one step start at the same byte, empty ones included.
    Takes time proportional to buffers times free gaps.
    """
    order = sorted(range(len(lifetimes)), key=lambda index: (lifetimes[index].first, index))
    sizes = [_round_up(max(1, each.size), alignment) for each in lifetimes]
    offsets = [0] * len(lifetimes)
    live: list[tuple[int, int]] = []  # (last step, buffer), the earliest first
    gaps = _FreeGaps()
    for index in order:
        while live and live[0][0] < lifetimes[index].first:
            _, ended = live.pop(0)
            gaps.give_back(offsets[ended], sizes[ended])
        offsets[index] = gaps.take(sizes[index])
        insort(live, (lifetimes[index].last, index))
    return ArenaPlan(tuple(offsets), gaps.end)


def plan_arena_by_size(lifetimes: Sequence[Lifetime], alignment: int) -> ArenaPlan:
    """Place the largest buffers first, each into the smallest gap between those that live with it.

    A buffer that fits into no gap comes behind them. No two buffers that are live at one step overlap; every
    offset is a multiple of the alignment.
    """
    # Two buffers that are live at one step are both live where the later one begins.
    begins = sorted({each.first for each in lifetimes})
    live: list[set[Span]] = [set() for _ in begins]
    offsets, end = [0] * len(lifetimes), 0
    order = sorted(range(len(lifetimes)), key=lambda index: (-lifetimes[index].size, lifetimes[index].first))
    for index in order:
        buffer = lifetimes[index]
        size = _round_up(buffer.size, alignment)
        steps = live[bisect_left(begins, buffer.first) : bisect_right(begins, buffer.last)]
        taken = sorted(set().union(*steps))
        gap = _best_fit(_gaps_between(taken), size)
        offsets[index] = max(map(sum, taken), default=0) if gap is None else gap[0]
        end = max(end, offsets[index] + size)
        for spans in steps:
            spans.add((offsets[index], size))
    return ArenaPlan(tuple(offsets), end)


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _best_fit(gaps: Iterable[Span], size: int) -> Span | None:
    """The smallest gap of at least this size, the first one of several; None if there is none."""
    fitting = (gap for gap in gaps if gap[1] >= size)
    return min(fitting, key=lambda gap: (gap[1], gap[0]), default=None)


def _gaps_between(taken: Sequence[Span]) -> Iterator[Span]:
    """The gaps before and between spans, which come in order and may overlap; empty ones included."""
    end = 0
    for offset, size in taken:
        if offset >= end:
            yield end, offset - end
        end = max(end, offset + size)


class _FreeGaps:
    """The free gaps below `end`, sorted by offset, no two of them adjacent."""

    def __init__(self) -> None:
        self.end = 0
        self._free: list[Span] = []

    def take(self, size: int) -> int:
        """Take the smallest gap that fits, or the end; returns the offset."""
        gap = _best_fit(self._free, size)
        if gap is not None:
            self._free.remove(gap)
            if gap[1] > size:
                insort(self._free, (gap[0] + size, gap[1] - size))
            return gap[0]
        offset = self.end
        if self._free and sum(self._free[-1]) == self.end:  # the last gap reaches the end: let it grow
            offset = self._free.pop()[0]
        self.end = offset + size
        return offset

    def give_back(self, offset: int, size: int) -> None:
        """Free a span, and join it with the gaps that it touches."""
        insort(self._free, (offset, size))
        index = self._free.index((offset, size))
        first, last = max(index - 1, 0), min(index + 2, len(self._free))
        merged: list[Span] = []
        for start, length in self._free[first:last]:
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((start, length))
        self._free[first:last] = merged
