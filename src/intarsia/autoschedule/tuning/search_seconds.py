"""The seconds of a tuning run that a search of schedules may take."""

from __future__ import annotations

from math import isfinite
from typing import Final

from intarsia.tune.run_control import RunControl

SHARE: Final = 0.5
"""Share of the time left for a search that shares it with other passes."""

GROWTH: Final = 0.1
"""Seconds of that for each second of measuring so far and each second that is left: a model that is measured
in no time has few kernels, and its answer is not to wait for half of the budget."""

LEAST_SHARED: Final = 8.0
"""With less time no schedules are searched beside other passes: starting workers, timing the kernels and
compiling the first schedules of a transformed convolution take that long on two slow cores, and passes get no
time."""

LEAST: Final = 1.0
"""With less time no schedule is searched at all."""


def search_seconds(most: float, share: float, control: RunControl) -> float:
    """Return the seconds for a search of schedules; 0 if a run has too little time, which it then says.

    Args:
        most: Maximum seconds of the search.
        share: Maximum share of the time left; 1 where nothing else needs time.
        control: Budget of the run.
    """
    left = control.seconds_left
    if not most or not isfinite(left):
        return most
    seconds, least = share * left, LEAST
    if share < 1:
        least = LEAST_SHARED
        seconds = seconds if control.proves else min(seconds, max(least, GROWTH * control.meter.spent * left))
    if seconds < least:
        reason = f"its share of {seconds:.1f} s is too little: --schedules or a larger --budget searches"
        control.skip("the search of schedules", reason)
        return 0.0
    return min(most, seconds)
