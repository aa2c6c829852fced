"""Weights and biases of one layer as integers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import Constant, Expr
from intarsia.op.call import call
from intarsia.op.simulated_quantize_op import along_axis
from intarsia.passes.quantise.heavy_layer import HeavyLayer

Array = npt.NDArray[Any]

LARGEST_BIAS: Final = 2.0**30
"""Largest magnitude of an int32 bias: half of the range is left for the sum that it is added to."""


def safe_scale(scale: Array, bias: Array | None, input_scale: float) -> Array:
    """Return scales of weights, enlarged where the bias would not fit into 32 bits.

    A channel with tiny weights and an ordinary bias would overflow otherwise.

    Args:
        scale: Scales of the weights, one for each output channel.
        bias: The bias, one value for each output channel, or None.
        input_scale: Scale of the layer's input.
    """
    if bias is None:
        return scale
    least = np.abs(bias.reshape(-1)) / (input_scale * LARGEST_BIAS)
    return np.maximum(scale, least).astype(np.float32)


def quantised_weight(weight: Array, scale: Array, axis: int) -> Array:
    """Return weights as int8, without -128, so that they are symmetric."""
    return np.clip(np.rint(weight / along_axis(scale, axis, weight.ndim)), -127, 127).astype(np.int8)


def dequantised(data: Array, scale: Array, axis: int, like: Expr) -> Expr:
    """Return DequantizeLinear of integers with a scale for each index of an axis, and zero points of 0."""
    zero = Constant(np.zeros(scale.shape, data.dtype))
    return call("DequantizeLinear", Constant(data), Constant(scale), zero, span=like.span, axis=axis)


def weight_error(layer: HeavyLayer, scale: Array, mean: Array) -> Array:
    """Return the mean error of each output channel that rounding the weights makes.

    The sum over input channels and kernel elements of the error of the weight times the mean of its input.
    Padding is taken as having that mean, too.

    Args:
        layer: The layer.
        scale: Scales of its weights.
        mean: Mean of each input channel.

    Source: M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019.
    """
    weight, axis = layer.weight.data, layer.weight_axis
    rounded = quantised_weight(weight, scale, axis) * along_axis(scale, axis, weight.ndim)
    error = (rounded - weight).astype(np.float64)
    if layer.operator == "ConvTranspose":
        # Each result sums the taps of one phase, of which there are as many as the product of the strides.
        strides = layer.call.attrs.get("strides", (1,))
        assert isinstance(strides, tuple)
        phases = math.prod(stride for stride in strides if isinstance(stride, int))
        by_phase = error.reshape(*error.shape[:2], -1).sum(axis=-1) / phases
        return np.asarray(by_phase.T @ mean, np.float32)
    if layer.operator != "Conv":
        return np.asarray((error if axis == 0 else error.T) @ mean, np.float32)
    group = layer.call.attrs.get("group", 1)
    assert isinstance(group, int)
    taps = error.reshape(group, weight.shape[0] // group, weight.shape[1], -1).sum(axis=-1)
    means = mean.astype(np.float64).reshape(group, -1, 1)
    return np.asarray((taps @ means).reshape(-1), np.float32)


def integer_bias(bias: Array, scale: Array, like: Expr) -> Expr:
    """Return a bias as int32 with the scales of the products, which is how exporters write it."""
    steps = np.rint(bias.astype(np.float64) / scale.reshape((1,) * (bias.ndim - 1) + (-1,)))
    limits = np.iinfo(np.int32)
    data = np.clip(steps, limits.min, limits.max).astype(np.int32)
    return dequantised(data, scale, max(0, bias.ndim - 1), like)
