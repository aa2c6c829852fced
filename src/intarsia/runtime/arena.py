"""Placing buffers in one block of memory, so that buffers that are never live together share bytes."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.support.aligned_memory import ALIGNMENT


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


def plan_arena(lifetimes: Sequence[Lifetime]) -> ArenaPlan:
    """Place every buffer: in order of time, into the smallest free hole that fits, else at the end.

    No two buffers that are live at one step overlap; every offset is a multiple of `ALIGNMENT`.
    Takes time proportional to buffers times free holes.
    """
    order = sorted(range(len(lifetimes)), key=lambda index: (lifetimes[index].first, index))
    offsets = [0] * len(lifetimes)
    live: list[tuple[int, int]] = []  # (last step, buffer), the earliest first
    holes = _Holes()
    for index in order:
        while live and live[0][0] < lifetimes[index].first:
            _, ended = live.pop(0)
            holes.give_back(offsets[ended], _rounded(lifetimes[ended].size))
        offsets[index] = holes.take(_rounded(lifetimes[index].size))
        insort(live, (lifetimes[index].last, index))
    return ArenaPlan(tuple(offsets), holes.end)


def _rounded(size: int) -> int:
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT


class _Holes:
    """The free ranges below `end`, sorted by offset, no two of them adjacent."""

    def __init__(self) -> None:
        self.end = 0
        self._free: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        fitting = [hole for hole in self._free if hole[1] >= size]
        if fitting:
            offset, found = min(fitting, key=lambda hole: (hole[1], hole[0]))
            self._free.remove((offset, found))
            if found > size:
                insort(self._free, (offset + size, found - size))
            return offset
        offset = self.end
        if self._free and sum(self._free[-1]) == self.end:  # the last hole reaches the end: let it grow
            offset = self._free.pop()[0]
        self.end = offset + size
        return offset

    def give_back(self, offset: int, size: int) -> None:
        insort(self._free, (offset, size))
        index = self._free.index((offset, size))
        first, last = max(index - 1, 0), min(index + 2, len(self._free))
        merged: list[tuple[int, int]] = []
        for start, length in self._free[first:last]:
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((start, length))
        self._free[first:last] = merged
