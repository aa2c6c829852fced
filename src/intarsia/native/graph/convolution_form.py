"""Forms of convolutions with constant weights on blocked tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.group_form import GroupedShape, GroupForm, best_group_form
from intarsia.native.graph.region_plan import Array
from intarsia.native.te.operators.blocked_convolution import blocks_of_groups
from intarsia.native.te.operators.windows import Window

_FEW_CHANNELS = 4
"""Maximum number of input channels that a convolution reads from a plain tensor."""
_MUCH_REST = 1.2
"""Positions per channel from which a table of channel offsets, which skips padding, pays off."""


class ConvolutionKind(Enum):
    """Declaration of a convolution."""

    OF_PLAIN = "of plain"
    DEPTHWISE = "depthwise"
    BLOCKED = "blocked"
    BY_TABLE = "by table"


@dataclass(frozen=True, slots=True)
class ConvolutionForm:
    """A convolution of a blocked tensor.

    Attributes:
        kind: Declaration of the convolution.
        groups: Number of groups of the computation, each of which may merge several of the convolution's
            groups.
        source: Channel order of the input; unused for a plain input.
        result: Channel order of the result.
    """

    kind: ConvolutionKind
    groups: int
    source: ChannelOrder
    result: ChannelOrder

    @property
    def blocks(self) -> tuple[int, int]:
        """Which input blocks a block of results reads, as `blocks_of_groups` returns it."""
        lanes = self.result.lanes
        read, written = len(self.source.places), len(self.result.places)
        blocks = blocks_of_groups(read, written, self.groups, lanes, lanes)
        assert blocks is not None, "only such forms are chosen"
        return blocks


def convolution_form(
    weight: Array,
    groups: int,
    windows: Sequence[Window],
    given: ChannelOrder,
    decided: str = "",
    is_plain: bool = False,
    numbers: int = 1,
) -> ConvolutionForm | None:
    """Return the form with the fewest multiplications, zeros included; None if blocks do not fit the groups.

    Args:
        weight: Weights (M, C / groups, taps ...).
        groups: Number of groups.
        windows: Windows, one for each spatial dimension.
        given: Channel order of the input; the natural one if it is plain.
        decided: Value of the `GroupForm` of a grouped convolution; "" for the form of least cost. MERGED is
            the form in blocks of one group as well.
        is_plain: Whether the input is plain.
        numbers: Numbers that are multiplied as a word.
    """
    output_channels, group_channels, lanes = weight.shape[0], weight.shape[1], given.lanes
    natural, result = (
        ChannelOrder.natural(group_channels * groups, lanes),
        ChannelOrder.natural(output_channels, lanes),
    )
    if groups == group_channels * groups == output_channels and groups > 1:
        return ConvolutionForm(ConvolutionKind.DEPTHWISE, groups, given, given)
    is_inside = all(window.is_inside for window in windows)
    if groups == 1:
        is_filled = len(given.places) < _MUCH_REST * group_channels or not is_inside
        is_in_blocks = decided == GroupForm.MERGED.value  # one group is all of them
        kind = ConvolutionKind.BLOCKED if is_filled or is_in_blocks else ConvolutionKind.BY_TABLE
        is_read_plain = group_channels <= _FEW_CHANNELS and (is_plain or not is_in_blocks)
        kind = ConvolutionKind.OF_PLAIN if is_read_plain else kind
        return ConvolutionForm(kind, groups, given, result)
    shape = GroupedShape(groups, group_channels, output_channels // groups)
    match best_group_form(shape, windows, given, decided, is_plain, numbers):
        case GroupForm.TABLE:
            return ConvolutionForm(ConvolutionKind.BY_TABLE, groups, given, shape.padded(lanes)[1])
        case GroupForm.PLAIN:
            return ConvolutionForm(ConvolutionKind.OF_PLAIN, groups, given, shape.padded(lanes)[1])
        case GroupForm.PADDED:
            return ConvolutionForm(ConvolutionKind.BLOCKED, groups, *shape.padded(lanes))
        case GroupForm.MERGED:
            return ConvolutionForm(
                ConvolutionKind.BLOCKED, groups // (shape.merged(lanes) or 1), natural, result
            )
        case None:
            return None


def arranged_weight(weight: Array, form: ConvolutionForm) -> Array:
    """Return weights (M, C / groups, taps ...) in the channel orders and for the groups of a blocked form."""
    groups = form.source.channels // weight.shape[1]
    weight = with_merged_groups(weight, groups, groups // form.groups)
    if form.groups > 1:
        return form.result.arranged(weight, 0)
    return weight if form.source.is_natural else form.source.arranged(weight, 1)


def with_merged_groups(weight: Array, groups: int, merged: int) -> Array:
    """Return the weights (M, C / groups, taps ...) for fewer groups, with zeros between merged groups.

    Args:
        weight: Weights of the convolution.
        groups: Number of groups.
        merged: Number of groups that become one.
    """
    if merged == 1:
        return weight
    output_channels, group_channels, *taps = weight.shape
    grouped = weight.reshape(groups // merged, merged, output_channels // groups, group_channels, *taps)
    wide = np.zeros(
        (groups // merged, merged, output_channels // groups, merged, group_channels, *taps), weight.dtype
    )
    for i in range(merged):
        wide[:, i, :, i] = grouped[:, i]
    return wide.reshape(output_channels, merged * group_channels, *taps)
