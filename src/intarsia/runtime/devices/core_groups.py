"""Divide the cores of this machine among the CPU devices of a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

CoreGroup: TypeAlias = tuple[int, ...]
"""Numbers of the logical cores that one device may use, in ascending order."""


def allowed_cores() -> CoreGroup:
    """Return the logical cores that this process may use.

    Numbered from 0 where the system does not report them.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return tuple(sorted(affinity(0))) if affinity else tuple(range(os.cpu_count() or 1))


def core_groups(wanted: Sequence[int | None], cores: Sequence[int]) -> tuple[CoreGroup, ...]:
    """Return a group of cores for each device, disjoint unless there are more devices than cores.

    A device with a number of threads gets as many cores, the others share the rest evenly. Where the
    cores do not suffice, the largest groups are made smaller, but none empty. More devices than cores share
    cores.

    Args:
        wanted: Number of cores for each device, None where it does not matter.
        cores: Numbers of the available cores, one or more.
    """
    if len(wanted) >= len(cores):
        return tuple((cores[index % len(cores)],) for index in range(len(wanted)))
    unsized = [index for index, size in enumerate(wanted) if size is None]
    sizes = [max(1, size or 1) for size in wanted]
    while sum(sizes) > len(cores):
        sizes[sizes.index(max(sizes))] -= 1
    for turn in range(len(cores) - sum(sizes) if unsized else 0):
        sizes[unsized[turn % len(unsized)]] += 1
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    return tuple(tuple(cores[end - size : end]) for end, size in zip(ends, sizes, strict=True))
