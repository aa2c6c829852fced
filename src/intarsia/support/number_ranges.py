"""Sets of whole numbers as short texts: "3,5..6"."""

from __future__ import annotations

import re
from collections.abc import Sequence


def ranges_text(numbers: Sequence[int]) -> str:
    """Numbers, 0 or more, as text: "3,5..6"; in any order, each once."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}..{high}" for low, high in parts)


def parse_ranges(text: str) -> tuple[int, ...]:
    """The numbers that `ranges_text` wrote.

    Raises:
        ValueError: It did not write that.
    """
    numbers: list[int] = []
    for part in str(text).split(","):
        found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", part)
        if found is None:
            raise ValueError(f"{part!r} is no range of nodes")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return tuple(numbers)
