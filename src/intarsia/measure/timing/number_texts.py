"""Durations, ratios and errors as text."""

from __future__ import annotations

import math
from typing import Final

from intarsia.measure.timing.interleaved import RatioInterval

_DURATIONS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
NOTHING: Final = "-"
"""Text of what is unknown or was not measured."""


def duration_text(seconds: float) -> str:
    """Format a duration with three significant digits: 5.12 ms; "-" for an unknown (infinite) one."""
    if not math.isfinite(seconds):
        return NOTHING
    # 0.9995 units round to 1.00 with three digits, so 999.6 us is printed as 1.00 ms.
    scale, unit = next(((s, u) for s, u in _DURATIONS if seconds >= 0.9995 * s), _DURATIONS[-1])
    return f"{three_digits(seconds / scale)} {unit}"


def ratio_text(ratio: RatioInterval) -> str:
    """Format a ratio with its interval: 1.034 (1.020 to 1.051)."""
    if ratio.ratio == ratio.low == ratio.high == 1:
        return "1.000"
    if not math.isfinite(ratio.high):
        return f"{ratio.ratio:.3f} (too few rounds for an interval)"
    return f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def error_text(error: float) -> str:
    """Format an error with two significant digits: 1.2e-06."""
    return "0" if error == 0 else f"{error:.1e}"


def three_digits(value: float) -> str:
    """Format a number from 1 to 999 with three digits."""
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}"
