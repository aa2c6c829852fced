"""Where values that are alive at different times share memory: offsets in one arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intarsia.native.graph.region_plan import KernelPlan, RegionValue


@dataclass(frozen=True, slots=True)
class Lifetime:
    """When a value needs its memory.

    Attributes:
        value: Its number.
        size: In bytes.
        first: The place of the kernel that writes it.
        last: The place of the last kernel that reads it; `first` if none does.
    """

    value: int
    size: int
    first: int
    last: int


def lifetimes(
    kernels: Sequence[KernelPlan], values: Sequence[RegionValue], wholes: Mapping[int, int]
) -> tuple[Lifetime, ...]:
    """Of the memory that kernels write, in order.

    Args:
        kernels: In the order in which they run.
        values: All values of the region.
        wholes: For the root of each value that a kernel writes into the arena, the value whose memory it is
            a part of, or itself. Other values have memory of the caller's.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, kernel in enumerate(kernels):
        roots = (values[number].same_as for number in (*kernel.outputs, *kernel.inputs.values()))
        for whole in (wholes[root] for root in roots if root in wholes):
            first.setdefault(whole, place)
            last[whole] = place
    return tuple(Lifetime(whole, values[whole].size_bytes, first[whole], last[whole]) for whole in first)


def plan_memory(lifetimes: Sequence[Lifetime], alignment: int) -> tuple[Mapping[int, int], int]:
    """Offsets by value, multiples of the alignment, and the size of the arena.

    The largest values come first; each gets the smallest gap that it fits into between those that are alive
    with it, else the place behind them. The time grows with the number of values that are alive together.

    Args:
        lifetimes: Of values, each once.
        alignment: In bytes.
    """
    alive: list[list[tuple[int, int]]] = [
        [] for _ in range(1 + max((each.last for each in lifetimes), default=0))
    ]
    offsets: dict[int, int] = {}
    arena = 0
    for each in sorted(lifetimes, key=lambda item: (-item.size, item.first)):
        size = -(-each.size // alignment) * alignment
        taken = {span for place in range(each.first, each.last + 1) for span in alive[place]}
        begin = _best_fit(sorted(taken), size)
        offsets[each.value], arena = begin, max(arena, begin + size)
        for place in range(each.first, each.last + 1):
            alive[place].append((begin, begin + size))
    return offsets, arena


def _best_fit(taken: Sequence[tuple[int, int]], size: int) -> int:
    """Where the smallest gap of at least this size begins.

    Args:
        taken: Spans (begin, end) in order; they may overlap.
        size: In bytes.
    """
    best, best_size, end = None, 0, 0
    for begin, span_end in taken:
        gap = begin - end
        if gap >= size and (best is None or gap < best_size):
            best, best_size = end, gap
        end = max(end, span_end)
    return end if best is None else best
