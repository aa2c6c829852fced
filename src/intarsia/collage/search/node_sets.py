"""Sets of nodes as the bits of a Python int."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def nodes_of(mask: int) -> Iterator[int]:
    """Its nodes, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask_of(nodes: Sequence[int]) -> int:
    """The set of these nodes."""
    mask = 0
    for node in nodes:
        mask |= 1 << node
    return mask


def first_outside(mask: int) -> int:
    """The smallest node that is not in it."""
    return ((mask + 1) & ~mask).bit_length() - 1


def runs_of(mask: int) -> tuple[tuple[int, int], ...]:
    """Its maximal runs of consecutive nodes, each as (first, one after the last)."""
    runs, start = [], 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        length = first_outside(mask >> gap)
        runs.append((start + gap, start + gap + length))
        start += gap + length
        mask >>= gap + length
    return tuple(runs)


class RangeUnion:
    """The union of the sets of any run of nodes, in two steps.

    A sparse table: sets[k][i] is the union of 2**k sets from the i-th on. Two of them, overlapping,
    make any run. n log n sets of n bits.
    """

    def __init__(self, sets: Sequence[int]) -> None:
        self._sets = [list(sets)]
        reach = 1
        while 2 * reach <= len(sets):
            last = self._sets[-1]
            self._sets.append([one | other for one, other in zip(last, last[reach:], strict=False)])
            reach *= 2

    def over(self, runs: Sequence[tuple[int, int]]) -> int:
        """The union over these runs."""
        union = 0
        for start, end in runs:
            level = (end - start).bit_length() - 1
            row = self._sets[level]
            union |= row[start] | row[end - (1 << level)]
        return union
