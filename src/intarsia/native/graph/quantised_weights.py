"""Weights of quantised convolutions whose sums integers hold, on blocked tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from intarsia.native.graph.blocked_steps import has_byte_words
from intarsia.native.graph.dequantised import Dequantised, attribute
from intarsia.native.graph.region_plan import Array
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.compute_rule import NotCoveredError
from intarsia.native.te.operators.upsampling import dense_upsamplings_of

WHOLE: Final = 2**24
"""Limit of the whole numbers that float32 holds."""
MOST_SUMMANDS: Final = (2**31 - 1) // (255 * 128)
"""Maximum number of products of a sum that int32 holds for all bytes."""
_FEW_FILTERS: Final = 8
"""Minimum number of filters of a convolution by words of channels: fewer are no product of matrices."""
_FEW_CHANNELS: Final = 4
"""Maximum number of channels of a transposed convolution that is left in float32: one word."""


@dataclass(frozen=True, slots=True)
class ByteForms:
    """The forms in which convolutions of bytes are summed as integers.

    Attributes:
        lanes: Number of channels of a block; 0 if nothing is blocked.
        has_dot: Whether the machine has an instruction for dot products of words.
        has_channel_words: Whether convolutions on plain tensors are summed by words of four channels; others
            stay in float32 if nothing is blocked.
    """

    lanes: int = 0
    has_dot: bool = False
    has_channel_words: bool = False

    def are_dense_words(self, weight: tuple[int, ...], groups: int) -> bool:
        """Return whether a convolution on plain tensors is summed by words.

        Args:
            weight: Shape of its weights (M, C / groups, taps ...).
            groups: Number of its groups.
        """
        is_plain = self.has_channel_words and not self.lanes
        return is_plain and groups == 1 and weight[0] >= _FEW_FILTERS and 3 <= len(weight) <= 5


def weights_in_words(step: KernelStep, signed: Array, weight: Dequantised, forms: ByteForms) -> Array | None:
    """Return signed weights (M, C, taps ...) if a convolution is summed by words of channels, else None."""
    if str(step.op) != "Conv" or not forms.are_dense_words(signed.shape, attribute(step, "group", 1)):
        return None
    is_of_filters = weight.scale.size == 1 or weight.axis == 0
    return signed if is_of_filters and prod(signed.shape[1:]) <= MOST_SUMMANDS else None


def weights_in_blocks(
    step: KernelStep, signed: Array, weight: Dequantised, lanes: int, *, has_dot: bool
) -> Array | None:
    """Return signed weights as (M, C / groups, taps ...); None if integers do not compute a convolution.

    Args:
        step: Conv or ConvTranspose.
        signed: Its weights as signed bytes.
        weight: Scales and zero points of the weights.
        lanes: Number of channels of a block; 0 if nothing is blocked.
        has_dot: Whether the machine has an instruction for dot products of words.
    """
    is_transposed = str(step.op) == "ConvTranspose"
    if is_transposed and not _is_upsampling(step, signed):
        return None
    if weight.scale.size > 1 and weight.axis != int(is_transposed):
        return None
    signed = np.ascontiguousarray(signed.swapaxes(0, 1)) if is_transposed else signed
    filters, channels, *taps = signed.shape
    groups = attribute(step, "group", 1)
    is_depthwise = groups == filters == channels * groups and groups > 1
    if not lanes or filters * 2 < lanes or not 1 <= len(taps) <= 3:
        return None
    if (
        groups > 1
        and not is_depthwise
        and not has_byte_words(step.call, signed.shape, lanes, has_dot=has_dot)
    ):
        return None
    most = WHOLE // (255 * 128 * 2) if is_depthwise else MOST_SUMMANDS
    return None if prod(signed.shape[1:]) > most else signed


def _is_upsampling(step: KernelStep, signed: Array) -> bool:
    """Return whether a transposed convolution is dense, of more than one pixel and word."""
    try:
        dimensions = dense_upsamplings_of(compute_call_of(step.call, "conv"))
    except NotCoveredError:
        return False
    is_image = dimensions is not None and any(dimension.extent > 1 for dimension in dimensions)
    return is_image and signed.shape[0] > _FEW_CHANNELS
