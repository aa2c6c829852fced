"""Features of the buffers that a store uses."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.autoschedule.features.reuse import LoopTouches, Reuse, ReuseType, find_reuse
from intarsia.autoschedule.features.store_analysis import BufferUse, StoreAnalysis
from intarsia.autoschedule.features.touched_region import contiguous_elements

ACCESS_TYPES: Final = ("kRead", "kWrite", "kReadWrite")
"""Access types of a buffer."""
SIZES: Final = ("bytes", "unique_bytes", "lines", "unique_lines")
"""Measures of the amount of memory."""
BUFFER_FEATURES: Final = (
    *(f"acc_type.{kind}" for kind in ACCESS_TYPES),
    *SIZES,
    *(f"reuse_type.{kind.value}" for kind in ReuseType),
    *("reuse_dis_iter", "reuse_dis_bytes", "reuse_ct"),
    *(f"{size}_d_reuse_ct" for size in SIZES),
    "stride",
)
"""Names of the features of one buffer."""
_ONE_HOTS: Final = len(ACCESS_TYPES), len(ReuseType)
_HALF: Final = 0.5
"""Divisor of the "_d_reuse_ct" features without reuse, as upstream: twice the bytes."""


def buffer_features(
    store: StoreAnalysis, touches: LoopTouches, line_bytes: int, max_buffers: int
) -> list[float]:
    """Return the features of the `max_buffers` buffers with the most cache lines, padded with 0."""
    rows = []
    for use in store.uses:
        sizes = _sizes(store, use, line_bytes)
        rows.append((sizes[2], sizes[0], _row(use, sizes[:4], find_reuse(store, use, touches), sizes[4])))
    rows.sort(key=lambda row: (-row[0], -row[1]))
    values = [value for _, _, row in rows[:max_buffers] for value in row]
    return values + [0.0] * (max_buffers * len(BUFFER_FEATURES) - len(values))


def _row(use: BufferUse, sizes: tuple[float, ...], reused: Reuse, stride: float) -> list[float]:
    access = "kReadWrite" if use.is_read and use.is_written else "kWrite" if use.is_written else "kRead"
    divisor = max(_HALF, reused.count)
    return [
        *(float(kind == access) for kind in ACCESS_TYPES),
        *sizes,
        *(float(kind is reused.kind) for kind in ReuseType),
        *(reused.distance_iterations, reused.distance_bytes, reused.count),
        *(size / divisor for size in sizes),
        stride,
    ]


def _sizes(store: StoreAnalysis, use: BufferUse, line_bytes: int) -> tuple[float, float, float, float, float]:
    """Return bytes, distinct bytes, cache lines, distinct cache lines, and the innermost loop's stride."""
    loops, element = store.loops, use.element_bytes
    moving = next((depth for depth in range(len(loops) - 1, -1, -1) if use.moves_with(depth)), None)
    step = 0.0 if moving is None else use.step(moving)
    skipped = 1 if moving is None else prod(loop.extent for loop in loops[moving + 1 :])
    # Each line is loaded once per line_bytes of movement; loops inside the innermost moving one add no lines.
    lines = max(1.0, store.iterations / skipped * min(1.0, step * element / line_bytes))
    unique_bytes = use.touched[0] * element
    run_bytes = contiguous_elements(use.regions[0], use.buffer.shape) * element
    unique_lines = max(1.0, unique_bytes / min(run_bytes, line_bytes))
    is_innermost = moving == len(loops) - 1
    return store.iterations * element, unique_bytes, lines, unique_lines, step if is_innermost else 0.0
