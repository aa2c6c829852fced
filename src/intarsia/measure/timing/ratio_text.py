"""Format of a ratio of latencies with its interval."""

from __future__ import annotations

import math

from intarsia.measure.timing.interleaved import RatioInterval


def ratio_text(ratio: RatioInterval) -> str:
    """Format a ratio with its interval: 1.034 (1.020 to 1.051)."""
    if ratio.ratio == ratio.low == ratio.high == 1:
        return "1.000"
    if not math.isfinite(ratio.high):
        return f"{ratio.ratio:.3f} (too few rounds for an interval)"
    return f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
