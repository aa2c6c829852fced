"""Ranges of random integers as people write them: `ids=0,30522`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from intarsia.support.errors import UsageError

_RANGE: Final = re.compile(r"(?P<name>.+)=\s*(?P<low>-?\d+)\s*,\s*(?P<high>-?\d+)\s*", re.DOTALL | re.ASCII)


def parse_ranges(texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The ranges by input name: the least number, and the first that is too large.

    Raises:
        UsageError: One is malformed or empty, or an input is named twice.
    """
    ranges: dict[str, tuple[int, int]] = {}
    for text in texts:
        found = _RANGE.fullmatch(text)
        if found is None:
            raise UsageError(f"--range {text!r} is no range", help="write name=0,30522 for 0 to 30521")
        name, low, high = found["name"].strip(), int(found["low"]), int(found["high"])
        if low >= high:
            raise UsageError(f"--range {text!r} holds no number", help="the second number is not part of it")
        if name in ranges:
            raise UsageError(f"--range gives a range for {name!r} twice")
        ranges[name] = (low, high)
    return ranges
