"""Sets of whole numbers as short texts: "3,5..6"."""

from __future__ import annotations

import re
from collections.abc import Sequence


def ranges_text(numbers: Sequence[int]) -> str:
    """Return non-negative numbers, given in any order, as text: "3,5..6"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}..{high}" for low, high in parts)


def parse_ranges(text: str) -> tuple[int, ...]:
    """Parse a text of `ranges_text` into numbers.

    Raises:
        ValueError: The text is malformed.
    """
    numbers: list[int] = []
    for part in str(text).split(","):
        match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", part)
        if match is None:
            raise ValueError(f"{part!r} is no range of nodes")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(numbers)
