"""Parsing of ranges of random integers: `ids=0,30522`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from intarsia.support.errors import UsageError

_RANGE: Final = re.compile(r"(?P<name>.+)=\s*(?P<low>-?\d+)\s*,\s*(?P<high>-?\d+)\s*", re.DOTALL | re.ASCII)


def parse_ranges(texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Parse ranges by input name: the least number, and the exclusive upper bound.

    Raises:
        UsageError: A range is malformed or empty, or an input is named twice.
    """
    ranges: dict[str, tuple[int, int]] = {}
    for text in texts:
        match = _RANGE.fullmatch(text)
        if match is None:
            raise UsageError(f"--range {text!r} is not a range", help="write name=0,30522 for 0 to 30521")
        name, low, high = match["name"].strip(), int(match["low"]), int(match["high"])
        if low >= high:
            raise UsageError(
                f"--range {text!r} is empty",
                help="the second number is exclusive: write name=0,30522 for 0 to 30521",
            )
        if name in ranges:
            raise UsageError(f"--range gives a range for {name!r} twice")
        ranges[name] = (low, high)
    return ranges
