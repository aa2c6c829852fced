"""The curve of operations per byte over operations, from the innermost loop outwards."""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.autoschedule.features.operation_counts import NUMBER_KINDS
from intarsia.autoschedule.features.store_analysis import StoreAnalysis

SAMPLES: Final = 10
"""Points of the curve."""


def float_operations(store: StoreAnalysis) -> int:
    """Operations on floats in one iteration; the pairs that are counted as `mad` too are counted once."""
    return sum(store.record.counts[1 : len(NUMBER_KINDS)])


def intensity_curve(store: StoreAnalysis) -> list[float]:
    """Operations on floats per byte touched, at SAMPLES equally spaced numbers of operations up to all.

    A store outside of all loops has the same number everywhere; one without operations on floats has 0.
    """
    each = float_operations(store)
    if not each:
        return [0.0] * SAMPLES
    places = range(len(store.loops) - 1, -1, -1) if store.loops else (0,)
    total, operations, intensity = each, list[float](), list[float]()
    for place in places:
        total *= store.loops[place].extent if store.loops else 1
        operations.append(total)
        intensity.append(total / store.touched_bytes[place])
    wanted = np.linspace(0, total, SAMPLES + 1)[1:]
    return [float(value) for value in np.interp(wanted, operations, intensity)]
