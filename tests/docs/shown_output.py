"""Whether a command printed what a page shows for it.

`...` in a page stands for any text within a line, and alone in a line for any number of lines. In a block
with figures, numbers with their units, intervals, and which row of a table has won differ from run to run and
from machine to machine: they count for nothing, nor does the order of lines. A candidate that was too slow
for a race has "slow" or "-" in place of numbers. A whole number alone in its line, such as an exit code,
counts.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(?<![\w.])-?\d(?:[\d.,]*\d)?(?:e[+-]?\d+)?(?:%| (?:ns|us|ms|s|KB|MB|GB)\b)?")
_INTERVAL = re.compile(r"\(# to #[^)]*\)")


def is_shown(expected: str, actual: str, *, has_figures: bool) -> bool:
    """Return whether the output of a command is the one that a page shows.

    Args:
        expected: The output in the page.
        actual: The printed text.
        has_figures: Whether the block holds measured numbers.
    """
    if has_figures:
        printed = [_without_figures(line) for line in actual.splitlines()]
        patterns = [
            _line_pattern(_without_figures(line)) for line in expected.splitlines() if line.strip() != "..."
        ]
        return all(any(re.fullmatch(pattern, line) for line in printed) for pattern in patterns)
    lines = [_line_pattern(line) + r"\n" for line in _lines(expected)]
    pattern = "".join(r"(?:.*\n)*?" if line == r".*?\n" else line for line in lines)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(actual))) is not None


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def _line_pattern(line: str) -> str:
    return ".*?".join(map(re.escape, line.split("...")))


def _without_figures(line: str) -> str:
    if line.strip().isdecimal():
        return line.strip()
    line = _INTERVAL.sub("", _NUMBER.sub("#", line))
    words = ["#" if word in {"slow", "measured", "-"} else word for word in line.split()]
    return " ".join(word for word in words if word != "yes")
