"""Overlaps of boxes, as NonMaxSuppression of ONNX defines them."""

from __future__ import annotations

import numpy as np

from intarsia.measure.judge.gate_report import Array


def corners(boxes: Array, *, is_centered: bool) -> Array:
    """Return the lower and the upper corner of boxes, as rows of four numbers.

    Args:
        boxes: Rows of two opposite corners, or of a centre and a size.
        is_centered: Whether they have a centre and a size (`center_point_box=1`).
    """
    numbers = boxes.astype(np.float64)
    if is_centered:
        centre, half = numbers[:, :2], numbers[:, 2:] / 2
        return np.concatenate([centre - half, centre + half], axis=1)
    low, high = np.minimum(numbers[:, :2], numbers[:, 2:]), np.maximum(numbers[:, :2], numbers[:, 2:])
    return np.concatenate([low, high], axis=1)


def overlaps(first: Array, others: Array, noise: float) -> tuple[Array, Array]:
    """Return the intersection over the union of a box with others, and how far an engine may be off in it.

    Args:
        first: Corners of a box.
        others: Corners of boxes, as rows.
        noise: How far a corner may be off.
    """
    low, high = np.maximum(first[:2], others[:, :2]), np.minimum(first[2:], others[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=1)
    sides = np.concatenate(
        [np.broadcast_to(first[2:] - first[:2], (len(others), 2)), others[:, 2:] - others[:, :2]], 1
    )
    union = sides[:, :2].prod(axis=1) + sides[:, 2:].prod(axis=1) - shared
    shortest = np.maximum(sides.min(axis=1), np.finfo(np.float64).tiny)
    ratio = np.where(union > 0, shared / np.where(union > 0, union, 1), 0.0)
    # A corner that is off by e changes an area by at most 4 e / (its shorter side) of it, of both areas.
    return ratio, np.minimum(8 * noise / shortest, 1.0) + 8 * 2.0**-23
