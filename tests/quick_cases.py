"""The marker `quick_cases`: a test with many cases runs a few of them in `make test`, all in `make slow`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import pytest

GOLDEN_RATIO: Final = (5**0.5 - 1) / 2
"""Its multiples modulo 1 fill the unit interval evenly and without a period (Weyl's sequence): a constant
stride would take the same value of the innermost parameter each time."""


def chosen_cases(total: int, count: int) -> list[int]:
    """Return which cases are quick, spread over all of them, the first among them.

    Args:
        total: Number of cases.
        count: Number of quick cases; all are quick if there are no more.
    """
    order = sorted(range(total), key=lambda index: index * GOLDEN_RATIO % 1.0)
    return sorted(order[:count])


def mark_other_cases(items: Sequence[pytest.Item]) -> None:
    """Mark the cases beyond `quick_cases` as slow. Cases that are slow anyway do not count.

    Args:
        items: All collected tests. A case that is collected alone stays quick.
    """
    groups = defaultdict[tuple[pytest.Item | pytest.Collector | None, str], list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("quick_cases") and not item.get_closest_marker("slow"):
            groups[item.parent, getattr(item, "originalname", item.name)].append(item)
    for cases in groups.values():
        (count,) = cases[0].get_closest_marker("quick_cases").args  # type: ignore[union-attr]
        quick = set(chosen_cases(len(cases), count))
        for index, item in enumerate(cases):
            if index not in quick:
                item.add_marker("slow")
