"""Which parts of a whole fail, by trials of halves of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

MOST_TRIALS: Final = 10
"""Number of trials that are enough for one of 32 that fails, or for two of 8."""

Item = TypeVar("Item")


def isolate_failures(
    items: Sequence[Item],
    works: Callable[[Sequence[tuple[Item, ...]]], Sequence[bool]],
    most: int = MOST_TRIALS,
) -> tuple[Item, ...]:
    """Return the items that fail, of items that fail together: halves of what fails are tried.

    One that fails among n costs two trials for each of log2(n) halvings. Where the trials do not suffice, all
    items count as failing that stand beside one and were not seen to work. Items that only fail together all
    work.

    Args:
        items: Items that were tried together, and failed.
        works: Function that tries groups of items side by side, and returns for each whether it works.
        most: Maximum number of groups that are tried.
    """
    suspects, failed, left = [tuple(items)], list[Item](), most
    while suspects:
        failed += [item for group in suspects if len(group) == 1 for item in group]
        halves = [half for group in suspects if len(group) > 1 for half in _halves(group)]
        tried, untried = halves[:left], halves[left:]
        failed += [item for group in untried for item in group]
        left -= len(tried)
        suspects = [group for group, is_right in zip(tried, works(tried), strict=True) if not is_right]
    return tuple(item for item in items if item in failed)


def _halves(group: tuple[Item, ...]) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    return group[: len(group) // 2], group[len(group) // 2 :]
