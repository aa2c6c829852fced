"""The bias of a quantised layer: integers where it is a multiple of the sums' scale, else float32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep


def whole_bias(step: KernelStep | None, values: Sequence[RegionValue], scales: Array) -> Array | None:
    """Return a bias of each channel as int32; None if it is no such multiple.

    Args:
        step: DequantizeLinear of the bias; None if it is float32.
        values: Values of the region.
        scales: Scale of the sums of each channel.
    """
    if step is None:
        return None
    arrays = [None if arg is None else values[arg].constant for arg in step.args]
    integers, scale, zero = (*arrays, None)[:3]
    if integers is None or scale is None or integers.dtype != np.int32:
        return None
    if (zero is not None and zero.any()) or integers.size != scales.size:
        return None
    is_multiple = np.allclose(scale.reshape(-1), scales, rtol=1e-6, atol=0)
    return integers.reshape(-1) if is_multiple else None


def float_bias(constant: Array | None, channels: int) -> Array | None:
    """Return a bias of each channel in float32; None if it is no constant of the channels."""
    if constant is None or constant.size not in (1, channels) or constant.dtype != np.float32:
        return None
    if constant.size > 1 and constant.shape[-1] != channels:
        return None
    return np.broadcast_to(constant.reshape(-1), (channels,))
