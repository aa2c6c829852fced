"""Formatting of numbers with units."""

from __future__ import annotations

import math

_DURATIONS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
NOTHING = "-"


def duration_text(seconds: float) -> str:
    """Format a duration with three significant digits: 5.12 ms; "-" for an unknown (infinite) one."""
    if not math.isfinite(seconds):
        return NOTHING
    # 0.9995 units round to 1.00 with three digits, so 999.6 us is printed as 1.00 ms.
    scale, unit = next(((s, u) for s, u in _DURATIONS if seconds >= 0.9995 * s), _DURATIONS[-1])
    return f"{_three_digits(seconds / scale)} {unit}"


def interval_text(low: float, high: float) -> str:
    """Format an interval of durations: 5.10 ms to 5.15 ms; "-" if too few samples leave it open."""
    if not math.isfinite(high):
        return NOTHING
    return f"{duration_text(low)} to {duration_text(high)}"


def error_text(error: float) -> str:
    """Format an error with two significant digits: 1.2e-06."""
    return "0" if error == 0 else f"{error:.1e}"


def size_text(size: int) -> str:
    """Format a number of bytes in decimal units, as file managers do: 5.03 MB."""
    for scale, unit in _SIZES:
        if size >= 0.9995 * scale:
            return f"{_three_digits(size / scale)} {unit}"
    return f"{size} B"


def cache_text(size: int) -> str:
    """Format the size of a cache in binary units: 32 KiB; "unknown" for 0."""
    if size == 0:
        return "unknown"
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"


def _three_digits(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}"
