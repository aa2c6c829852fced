"""Ages as people write them."""

from __future__ import annotations

import re
from typing import Final

from intarsia.support.errors import UsageError

_UNITS: Final = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([mhdw])")


def parse_age(text: str) -> float:
    """Seconds of an age such as "30d".

    Raises:
        UsageError: Anything else.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not an age", help='write minutes, hours, days or weeks: "90m", "30d"')
    return float(found[1]) * _UNITS[found[2]]
