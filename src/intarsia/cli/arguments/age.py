"""Parsing of ages."""

from __future__ import annotations

import re
from typing import Final

from intarsia.support.errors import UsageError

_UNITS: Final = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([mhdw])")


def parse_age(text: str) -> float:
    """Parse an age such as "30d" to seconds.

    Raises:
        UsageError: The text is not an age.
    """
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an age", help='write minutes, hours, days or weeks: "90m", "30d"')
    return float(match[1]) * _UNITS[match[2]]
