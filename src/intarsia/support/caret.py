"""Where in a text an error is: the line, and a caret below the column."""

from __future__ import annotations

from itertools import islice
from typing import Final

_WIDEST: Final = 100  # columns of the offending line that are shown


def caret_lines(source: str, line: int, column: int) -> str:
    """Return a line of a text and a caret below one column, indented; long lines are cut around it.

    Args:
        source: The whole text.
        line: Number of the line, from 1.
        column: Number of the column, from 1.
    """
    shown = next(islice(source.split("\n"), line - 1, None), "").replace("\t", " ")
    start = max(0, column - 1 - _WIDEST // 2) if len(shown) > _WIDEST else 0
    shown = ("..." if start else "") + shown[start : start + _WIDEST]
    caret = column - 1 - start + (3 if start else 0)
    return f"  {shown}\n  {' ' * caret}^"
