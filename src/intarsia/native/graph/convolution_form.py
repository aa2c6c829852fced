"""How a convolution with constant weights works on blocked tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.region_plan import Array
from intarsia.native.te.operators.blocked_convolution import blocks_of_groups
from intarsia.native.te.operators.windows import Window

_FEW_CHANNELS = 4
"""A convolution reads so many channels from a plain tensor."""
_MOST_MERGED = 4
"""Groups of a convolution that become one, if blocks do not fit otherwise: a scalar kernel takes as long."""
_MUCH_REST = 1.2
"""Places for each channel from which on it pays to look up where channels are, and pass over the rest."""


class ConvolutionKind(Enum):
    """Which of the declarations a convolution has."""

    OF_PLAIN = "of plain"
    DEPTHWISE = "depthwise"
    BLOCKED = "blocked"
    BY_TABLE = "by table"


@dataclass(frozen=True, slots=True)
class ConvolutionForm:
    """A convolution of a blocked tensor.

    Attributes:
        kind: Its declaration.
        groups: In how many groups it is computed; several of its own may be one of them.
        source: In which order it reads the channels of its input; no matter if that is plain.
        result: In which order it makes channels.
    """

    kind: ConvolutionKind
    groups: int
    source: ChannelOrder
    result: ChannelOrder


def convolution_form(
    weight: Array, groups: int, windows: Sequence[Window], given: ChannelOrder
) -> ConvolutionForm | None:
    """The form with the fewest products, zeros included; None if blocks do not fit the groups.

    Args:
        weight: (M, C / groups, taps ...).
        groups: How many there are.
        windows: One for each spatial dimension.
        given: The order in which the channels of the input lie, or would lie if it were blocked.
    """
    made, read, lanes = weight.shape[0], weight.shape[1], given.lanes
    natural, result = ChannelOrder.natural(read * groups, lanes), ChannelOrder.natural(made, lanes)
    if groups == read * groups == made and groups > 1:
        return ConvolutionForm(ConvolutionKind.DEPTHWISE, groups, given, given)
    is_inside = all(window.is_inside for window in windows)
    if groups == 1:
        is_filled = len(given.places) < _MUCH_REST * read or not is_inside
        kind = ConvolutionKind.BLOCKED if is_filled else ConvolutionKind.BY_TABLE
        kind = ConvolutionKind.OF_PLAIN if read <= _FEW_CHANNELS else kind
        return ConvolutionForm(kind, groups, given, result)
    merged = _merged(read * groups, made, groups, lanes)
    wide = ChannelOrder.of_groups(made, groups, lanes)
    is_whole = len(wide.places) == made and not given.is_natural
    waste = len(wide.places) / made
    if is_inside and (merged is None or waste < merged or is_whole):
        return ConvolutionForm(ConvolutionKind.BY_TABLE, groups, given, wide)
    if merged is None:
        return None
    return ConvolutionForm(ConvolutionKind.BLOCKED, groups // merged, natural, result)


def _merged(channels: int, made: int, groups: int, lanes: int) -> int | None:
    """How many groups must become one so that blocks lie in whole groups; None if that is too many."""
    for merged in range(1, min(groups, _MOST_MERGED) + 1):
        if groups % merged == 0 and blocks_of_groups(channels, made, groups // merged, lanes, lanes):
            return merged
    return None


def with_merged_groups(weight: Array, groups: int, merged: int) -> Array:
    """Weights (M, C / groups, taps ...) of a convolution as those of one with fewer groups, with zeros.

    Args:
        weight: The weights.
        groups: How many groups there are.
        merged: How many of them become one.
    """
    if merged == 1:
        return weight
    made, read, *taps = weight.shape
    own = weight.reshape(groups // merged, merged, made // groups, read, *taps)
    wide = np.zeros((groups // merged, merged, made // groups, merged, read, *taps), weight.dtype)
    for place in range(merged):
        wide[:, place, :, place] = own[:, place]
    return wide.reshape(made, merged * read, *taps)
