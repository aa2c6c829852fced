"""Lifetimes of the values that kernels write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.native.graph.region_plan import KernelPlan, RegionValue
from intarsia.support.arena import Lifetime


def lifetimes(
    kernels: Sequence[KernelPlan], values: Sequence[RegionValue], wholes: Mapping[int, int]
) -> dict[int, Lifetime]:
    """Return the lifetimes of the memory that kernels write, by value; a kernel is a step.

    Args:
        kernels: Kernels in the order in which they run.
        values: Values of the region.
        wholes: Number of the value that contains the memory of each root written into the arena, by root.
            Other values are in memory of the caller.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for position, kernel in enumerate(kernels):
        roots = (values[number].same_as for number in (*kernel.outputs, *kernel.inputs.values()))
        for whole in (wholes[root] for root in roots if root in wholes):
            first.setdefault(whole, position)
            last[whole] = position
    return {whole: Lifetime(values[whole].size_bytes, first[whole], last[whole]) for whole in first}
