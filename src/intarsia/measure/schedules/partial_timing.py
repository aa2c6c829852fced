"""Estimate the time of a schedule from a part of its parallel loops."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Final

from intarsia.measure.schedules.kernel_timing import KernelTiming
from intarsia.measure.schedules.loaded_schedule import LoadedSchedule
from intarsia.native.execution.partial_loops import PartialLoops

_PART_SECONDS: Final = 0.002
"""Seconds of a part at the speed of the best schedule: long enough to be timed to a few percent."""
_LEAST_PARTS: Final = 2
"""A schedule of fewer parts is so short that it is run as a whole."""
_MOST_PARTS: Final = 64


def estimate_whole(
    loaded: LoadedSchedule,
    best_seconds: float,
    timing: KernelTiming,
    clock: Callable[[], float] = perf_counter,
) -> float:
    """Return a low estimate of the seconds of a call from parts of its parallel loops; 0 if there is none.

    A part that is clearly slower than the best schedule is repeated, so that no disturbance of a run decides.

    Args:
        loaded: The schedule.
        best_seconds: Seconds of the best schedule so far; inf if there is none.
        timing: Timing options; only long calls are estimated.
        clock: Clock in seconds.
    """
    if not loaded.task.is_divisible or not timing.policy.max_seconds < best_seconds < inf:
        return 0.0
    parts = min(_MOST_PARTS, int(best_seconds / _PART_SECONDS))
    if parts < _LEAST_PARTS:
        return 0.0
    limit, least = timing.clear_ratio * best_seconds, inf
    for _ in range(2):
        least = min(least, _time_part(loaded, parts, clock))
        if least <= limit:
            return 0.0
    return least


def _time_part(loaded: LoadedSchedule, parts: int, clock: Callable[[], float]) -> float:
    """Return the estimate of one run of a part; 0 if the kernel has no parallel loop to divide."""
    part = PartialLoops(loaded.task.pool, parts)
    start = clock()
    loaded.call_part(part)
    seconds = clock() - start
    # Loops are divided by different ratios if they are short; the least one gives a low estimate.
    return seconds * part.ratio if part.ratio < inf else 0.0
