"""Formatting of numbers with units."""

from __future__ import annotations

import math

from intarsia.measure.timing.number_texts import NOTHING, duration_text, error_text, ratio_text, three_digits

__all__ = [
    "NOTHING",
    "cache_text",
    "duration_text",
    "error_text",
    "interval_text",
    "ratio_text",
    "size_text",
]

_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))


def interval_text(low: float, high: float) -> str:
    """Format an interval of durations: 5.10 ms to 5.15 ms; "-" if too few samples leave it open."""
    if not math.isfinite(high):
        return NOTHING
    return f"{duration_text(low)} to {duration_text(high)}"


def size_text(size: int) -> str:
    """Format a number of bytes in decimal units, as file managers do: 5.03 MB."""
    for scale, unit in _SIZES:
        if size >= 0.9995 * scale:
            return f"{three_digits(size / scale)} {unit}"
    return f"{size} B"


def cache_text(size: int) -> str:
    """Format the size of a cache in binary units: 32 KiB; "unknown" for 0."""
    if size == 0:
        return "unknown"
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"
