"""Ranges of channels between layers, made equal before quantisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.passes.quantise.channel_scaling import (
    LARGEST_EXPONENT,
    ScalableValue,
    computing_layer,
    scalable_values,
    with_scaled_channels,
)
from intarsia.passes.quantise.heavy_layer import is_annotation, top_level
from intarsia.passes.quantise.weight_channels import input_factor, input_ranges, output_factor, output_ranges
from intarsia.transform import ModulePass, PassContext, register_pass

Array = npt.NDArray[Any]

_SWEEPS: Final = 30
"""Maximum number of sweeps over all pairs of layers; MobileNetV2 needs 4."""


@register_pass
@dataclass(frozen=True)
class EqualizeLayers(ModulePass, opt_level=0, required=("InferType",)):
    """Scales channels between layers of @main, so that weights before and after have equal ranges.

    One scale for all channels of a value is wasted on most of them if some have far larger weights than
    others. Where a convolution, Gemm or MatMul with constant weights is read by such layers only, directly or
    behind Relu, pools and the like, its output channels are divided by powers of two, and the input channels
    of the layers behind it multiplied: the program computes the same bits. The exponent of a channel is that
    of the square root of the ratio of both ranges, rounded; pairs of layers are looked at again until nothing
    changes.

    It needs no inputs. Clip, as in MobileNetV2 behind most layers, does not pass scaled channels on. A
    program with annotations stays as it is: `AnnotateQuantization` comes after this.

    Source: M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019,
    section 4.1, with powers of two.

    Before:
        def @main(%x: Tensor[(1, 2), float32]) {
          MatMul(Relu(MatMul(%x, meta[Constant][0])), meta[Constant][1])
        }
    After:
        def @main(%x: Tensor[(1, 2), float32]) {
          MatMul(Relu(MatMul(%x, meta[Constant][2])), meta[Constant][3])
        }
    Constants:
        full(2, 3, 16, float32) ones(3, 1) full(2, 3, 4, float32) full(3, 1, 4, float32)
    """

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:  # of all passes
        """The module with equalised layers in @main; linear in the program and its weights."""
        if "main" not in mod or any(map(is_annotation, top_level(mod["main"].body))):
            return mod
        function = mod["main"]
        exponents = equalizing_exponents(scalable_values(function.body))
        after = with_scaled_channels(function, {key: powers.tolist() for key, powers in exponents.items()})
        return mod if after is function else mod.with_function("main", after)


def equalizing_exponents(values: tuple[ScalableValue, ...]) -> dict[int, Array]:
    """Return the exponents for each channel of values between layers, by the number of the value.

    Args:
        values: Values of a function; those that no heavy layer computes are left out.
    """
    pairs = [(value, first) for value in values if (first := computing_layer(value)) is not None]
    layers = {layer.call: layer for value, first in pairs for layer in (first, *value.readers)}
    sizes = {user: np.abs(layer.weight.data) for user, layer in layers.items()}
    totals = {value.number: np.zeros(value.channels, np.int32) for value, _ in pairs}
    for _ in range(_SWEEPS):
        is_changed = False
        for value, first in pairs:
            before = output_ranges(first, sizes[first.call])
            after = np.max([input_ranges(layer, sizes[layer.call]) for layer in value.readers], axis=0)
            powers = _exponents(before, after, totals[value.number])
            if not powers.any():
                continue
            is_changed = True
            totals[value.number] += powers
            scale = np.ldexp(np.float32(1), powers)
            sizes[first.call] = sizes[first.call] * output_factor(first, 1 / scale)
            for layer in value.readers:
                sizes[layer.call] = sizes[layer.call] * input_factor(layer, scale)
        if not is_changed:
            break
    return {number: powers for number, powers in totals.items() if powers.any()}


def _exponents(before: Array, after: Array, totals: Array) -> Array:
    """Return the exponents that make two ranges of each channel equal; 0 where one of them is 0.

    Args:
        before: Ranges of the weights in front of the value.
        after: Ranges of the weights behind it.
        totals: Exponents so far, whose sums with the result stay within the limit.
    """
    is_scaled = (before > 0) & (after > 0)
    ratios = np.divide(before, after, out=np.ones_like(before), where=is_scaled)
    powers = np.rint(np.log2(ratios) / 2).astype(np.int32)
    limited: Array = np.clip(totals + powers, -LARGEST_EXPONENT, LARGEST_EXPONENT) - totals
    return limited
