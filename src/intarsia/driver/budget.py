"""Parsing of time budgets."""

from __future__ import annotations

import math
import re

from intarsia.support.errors import UsageError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)\Z")


def parse_budget(budget: str | float) -> float:
    """Parse a budget to seconds: a number of seconds, or text such as "90s", "5m", "1.5h".

    A budget of 0 measures nothing: decisions of earlier runs are applied.

    Raises:
        UsageError: The budget is not a time.
    """
    seconds = math.nan
    if isinstance(budget, str):
        match = _BUDGET.match(budget.strip())
        seconds = float(match[1]) * _UNITS[match[2]] if match else math.nan
    else:
        seconds = float(budget)
    if not 0 <= seconds < math.inf:
        raise UsageError(f"the budget {budget!r} is not a time", help='write seconds, or "90s", "5m", "1h"')
    return seconds
