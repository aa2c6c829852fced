"""The curve of operations per byte over operations, from the innermost loop outwards."""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.autoschedule.features.operation_counts import NUMBER_KINDS
from intarsia.autoschedule.features.store_analysis import StoreAnalysis

SAMPLES: Final = 10
"""Points of the curve."""


def float_operations(store: StoreAnalysis) -> int:
    """Return the float operations of one iteration; `mad` is left out, its pairs are counted already."""
    return sum(store.record.counts[1 : len(NUMBER_KINDS)])


def intensity_curve(store: StoreAnalysis) -> list[float]:
    """Return float operations per byte touched, at SAMPLES equally spaced numbers of operations.

    A store outside of all loops has the same number everywhere; one without operations on floats has 0.
    """
    per_iteration = float_operations(store)
    if not per_iteration:
        return [0.0] * SAMPLES
    depths = range(len(store.loops) - 1, -1, -1) if store.loops else (0,)
    total, operations, intensity = per_iteration, list[float](), list[float]()
    for depth in depths:
        total *= store.loops[depth].extent if store.loops else 1
        operations.append(total)
        intensity.append(total / store.touched_bytes[depth])
    sampled = np.linspace(0, total, SAMPLES + 1)[1:]
    return [float(value) for value in np.interp(sampled, operations, intensity)]
