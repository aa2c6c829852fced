"""The markers `quick_cases` and `quick_tests`: `make test` runs some of many tests, `make slow` the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
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


def mark_other_cases(items: Sequence[pytest.Item], is_whole_file: bool = False) -> None:
    """Mark the cases beyond `quick_cases`, and the tests beyond `quick_tests`, as slow.

    Tests that `make test` leaves out anyway do not count.

    Args:
        items: All collected tests. A case that is collected alone stays quick.
        is_whole_file: Whether to ignore `quick_tests`.
    """
    cases = defaultdict[tuple[object, ...], list[pytest.Item]](list)
    for item in _quick(items, "quick_cases"):
        cases[item.parent, getattr(item, "originalname", item.name)].append(item)
    _mark_all_but_some("quick_cases", cases.values())
    if is_whole_file:
        return
    tests = defaultdict[tuple[object, ...], list[pytest.Item]](list)
    for item in _quick(items, "quick_tests"):
        if not _stays(item):
            tests[(item.path,)].append(item)
    _mark_all_but_some("quick_tests", tests.values())


def _stays(item: pytest.Item) -> bool:
    """Return whether `quick_tests` names the test: it reaches code that no other test of `make test` does."""
    marker = item.get_closest_marker("quick_tests")
    return marker is not None and item.name in marker.kwargs.get("also", ())


def _quick(items: Sequence[pytest.Item], marker: str) -> list[pytest.Item]:
    left_out = ("slow", "processes")
    return [
        item
        for item in items
        if item.get_closest_marker(marker) and not any(map(item.get_closest_marker, left_out))
    ]


def _mark_all_but_some(marker: str, groups: Iterable[Sequence[pytest.Item]]) -> None:
    for group in groups:
        (count,) = group[0].get_closest_marker(marker).args  # type: ignore[union-attr]
        quick = set(chosen_cases(len(group), count))
        for index, item in enumerate(group):
            if index not in quick:
                item.add_marker("slow")
