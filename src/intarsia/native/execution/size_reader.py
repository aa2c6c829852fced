"""The entries of a table for the sizes of a call, evaluated together where they are parts of one covering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from intarsia.native.execution.size_table import Entry, Quotient, SizeTable

_Numbers: TypeAlias = tuple[tuple[int, ...], ...]
_Parts: TypeAlias = list[tuple[int, int, int]]
"""For each number that an entry is: the position of the entry, then where the number is."""


class SizeReader:
    """A table that is ready to be evaluated.

    A network has hundreds of entries, most of which are numbers of the same few coverings: of each width of
    tiles the count, the begin and the last one. A covering is looked up once.

    Args:
        table: The table.
    """

    def __init__(self, table: SizeTable) -> None:
        self._rest = [0] * len(table.entries)
        self._steps: list[tuple[Callable[[Sequence[int]], _Numbers], _Parts]] = []
        parts_of: dict[Entry, _Parts] = {}
        for position, entry in enumerate(table.entries, table.sizes):
            if isinstance(entry, Quotient):
                self._steps.append((entry.numbers, [(position, 0, 0)]))
                continue
            covering = replace(entry, at=0, part=0)
            if covering not in parts_of:
                # Here, what it reads is evaluated; what reads its numbers comes behind its first entry.
                parts_of[covering] = []
                self._steps.append((entry.numbers, parts_of[covering]))
            parts_of[covering].append((position, entry.at, entry.part))

    def values(self, sizes: Sequence[int]) -> list[int]:
        """Return the values of all entries for the sizes of a call."""
        values = [*sizes, *self._rest]
        for evaluate, parts in self._steps:
            numbers = evaluate(values)
            for position, at, part in parts:
                values[position] = numbers[at][part]
        return values
