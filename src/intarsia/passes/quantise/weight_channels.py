"""Weights of heavy layers by input and output channels: their ranges, and factors that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.passes.quantise.heavy_layer import HeavyLayer

Array = npt.NDArray[Any]


def input_factor(layer: HeavyLayer, factor: Array) -> Array:
    """Return a factor for each input channel in a shape that broadcasts with the weights.

    The input channels of a group stand along axis 1 of the weights of its filters, along axis 0.
    """
    rank = layer.weight.data.ndim
    if layer.operator != "Conv":
        return factor.reshape(tuple(-1 if axis == 1 - layer.weight_axis else 1 for axis in range(rank)))
    by_group = factor.reshape(_groups(layer), -1)
    by_filter = np.repeat(by_group, layer.weight.data.shape[0] // len(by_group), axis=0)
    return by_filter.reshape(*by_filter.shape, *(1,) * (rank - 2))


def output_factor(layer: HeavyLayer, factor: Array) -> Array:
    """Return a factor for each output channel in a shape that broadcasts with the weights."""
    rank = layer.weight.data.ndim
    return factor.reshape(tuple(-1 if axis == layer.weight_axis else 1 for axis in range(rank)))


def input_ranges(layer: HeavyLayer, magnitudes: Array) -> Array:
    """Return the largest magnitude of the weights of each input channel.

    Args:
        layer: The layer.
        magnitudes: Magnitudes in the shape of its weights.
    """
    if layer.operator != "Conv":
        others = tuple(axis for axis in range(magnitudes.ndim) if axis != 1 - layer.weight_axis)
        return np.asarray(magnitudes.max(axis=others))
    filters, channels = magnitudes.shape[:2]
    by_group = magnitudes.reshape(_groups(layer), filters // _groups(layer), channels, -1)
    return np.asarray(by_group.max(axis=(1, 3)).reshape(-1))


def output_ranges(layer: HeavyLayer, magnitudes: Array) -> Array:
    """Return the largest magnitude of the weights of each output channel.

    Args:
        layer: The layer.
        magnitudes: Magnitudes in the shape of its weights.
    """
    axes = tuple(axis for axis in range(magnitudes.ndim) if axis != layer.weight_axis)
    return np.asarray(magnitudes.max(axis=axes))


def _groups(layer: HeavyLayer) -> int:
    group = layer.call.attrs.get("group", 1)
    assert isinstance(group, int)
    return group
