"""Tables: aligned columns as plain text, and the same on a terminal with rules and colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable

GAP = "  "


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under headers.

    Attributes:
        headers: Header of each column.
        rows: Rows of cells, one per header.
        numeric: Indices of right-aligned columns.
        chosen: Index of the highlighted row, or None.

    Raises:
        ValueError: A row has more or fewer cells than there are headers.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    chosen: int | None = None

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.headers):
                raise ValueError(f"a row has {len(row)} cells under {len(self.headers)} headers: {row}")


def plain_table(table: Table) -> str:
    """Format a table with aligned columns, without truncation and trailing spaces."""
    lines = [tuple(map(_one_line, line)) for line in (table.headers, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_plain_line(line, widths, table.numeric) for line in lines)


def rich_table(table: Table) -> RichTable:
    """Create a table for a terminal, which folds long cells."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, header in enumerate(table.headers):
        drawn.add_column(Text(header), justify="right" if index in table.numeric else "left", overflow="fold")
    for index, row in enumerate(table.rows):
        drawn.add_row(*map(Text, row), style="bold green" if index == table.chosen else None)
    return drawn


def _one_line(cell: str) -> str:
    return " ".join(cell.splitlines())


def _plain_line(cells: Sequence[str], widths: Sequence[int], numeric: frozenset[int]) -> str:
    aligned = (
        cell.rjust(width) if index in numeric else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return GAP.join(aligned).rstrip()
