"""When the values that kernels write need memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.native.graph.region_plan import KernelPlan, RegionValue
from intarsia.support.arena import Lifetime


def lifetimes(
    kernels: Sequence[KernelPlan], values: Sequence[RegionValue], wholes: Mapping[int, int]
) -> dict[int, Lifetime]:
    """Return the lifetimes of the memory that kernels write, by value; a kernel is a step.

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
    return {whole: Lifetime(values[whole].size_bytes, first[whole], last[whole]) for whole in first}
