"""The seconds and trials of a tuning run that a search of schedules may take."""

from __future__ import annotations

from math import inf, isfinite
from typing import Final

from intarsia.tune.run_control import RunControl

SHARE: Final = 0.5
"""Share of the time and of the trials left for a search that shares them with other passes."""

GROWTH: Final = 0.1
"""Seconds of that for each second of measuring so far and each second that is left: a model that is measured
in no time has few kernels, and its answer is not to wait for half of the budget."""

LEAST_SHARED: Final = 3.0
"""With less time no schedules are searched beside other passes: timing the kernels, compiling some schedules
of a kernel, and measuring the best of them again take that long. The workers are those of the run."""

SECONDS_EACH: Final = 4.0
"""Seconds for each kernel of a search beside other passes: most gains come from the first dozens of
schedules."""

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


def seconds_each(share: float, control: RunControl) -> float:
    """Return the maximum seconds for each searched kernel.

    Args:
        share: Maximum share of the time left; 1 where nothing else needs time.
        control: Budget of the run.
    """
    return inf if share == 1 or control.proves else SECONDS_EACH


def search_trials(most: int | None, control: RunControl) -> int | None:
    """Return the trials for a search of schedules; 0 if a run has too few, which it then says.

    Programs with the schedules need trials as well, however much of the time the search may take.

    Args:
        most: Maximum trials of the search, or None.
        control: Budget of the run.

    Returns:
        The trials; None for no limit.
    """
    left = control.trials_left
    if not isfinite(left):
        return most
    trials = int(SHARE * left)
    if trials < 1:
        control.skip("the search of schedules", "no trials are left for it: a larger --trials searches")
        return 0
    return trials if most is None else min(most, trials)
