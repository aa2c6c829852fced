"""Forms of grouped convolutions on blocked tensors: where the blocks of channels lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Final

from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.channel_words import channel_words
from intarsia.native.te.operators.blocked_convolution import blocks_of_groups
from intarsia.native.te.operators.windows import Window

MOST_PLAIN_CHANNELS: Final = 8
"""Maximum number of input channels of a group that are always read without blocks, each in its rows."""
_PLAIN_BYTES: Final = 1 << 18
"""Maximum size of a group's input of more channels that is read without blocks: half of the smallest
second-level cache, in which its rows stay although they are apart from each other."""
ROW_COST: Final = 1.3
"""Cost of a multiplication of more channels in rows, relative to one in blocks, by measurement."""
_TRANSFORMED: Final = 3
"""Taps of the windows of two dimensions that Winograd's transforms compute in blocks."""
_FEWEST_PIXELS: Final = 144
"""Minimum number of pixels of an image for these transforms: those of the weights are read for all tiles."""
_ELEMENT_BYTES: Final = 4
MOST_WASTE: Final = 4.0
"""Maximum ratio of multiplications, zeros included: a scalar kernel takes as long as four."""
_COPY_COST: Final = 32.0
"""Cost of moving an element to another order of channels, in multiplications, of which AVX2 computes 16 per
cycle: 59 us for 64 x 40 x 40 elements (`measure.kernel_times`, AMD EPYC with AVX2), two cycles for each.

The ratio is that of two kernels of our own, which was not measured on wider vectors: it stays a constant."""
COPY_COST_OF_PLAIN: Final = 16.0
"""The same for an element of a plain tensor, transposed in squares. A copy of 46 x 786 elements takes 2.8 us
on Zen 5, which is less, but kernels that read the copy wait for it too: with 8, sixteen drawn layers for
which the choice differs take 1.13 times as long there (one thread)."""


class GroupForm(Enum):
    """Form of a grouped convolution that is not depthwise.

    Attributes:
        MERGED: Several groups become one, with zeros between them, until blocks do not cross groups.
        PADDED: Each group begins with a block of its own, in the input and in the result.
        TABLE: Each group of results begins with a block of its own; a table has the places of input channels.
        PLAIN: Each group of results begins with a block of its own; the input has few channels and no blocks.
    """

    MERGED = "merged"
    PADDED = "padded"
    TABLE = "table"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class GroupedShape:
    """The channels of a grouped convolution.

    Attributes:
        groups: Number of groups.
        read: Number of input channels of a group.
        written: Number of result channels of a group.
    """

    groups: int
    read: int
    written: int

    @property
    def channels(self) -> int:
        """Number of input channels."""
        return self.groups * self.read

    @property
    def filters(self) -> int:
        """Number of result channels."""
        return self.groups * self.written

    def merged(self, lanes: int) -> int | None:
        """Return how many groups must be merged so that blocks do not cross groups; None if too many."""
        for count in range(1, min(self.groups, int(MOST_WASTE)) + 1):
            if self.groups % count == 0 and blocks_of_groups(
                self.channels, self.filters, self.groups // count, lanes, lanes
            ):
                return count
        return None

    def padded(self, lanes: int) -> tuple[ChannelOrder, ChannelOrder]:
        """Return the orders of input and result in which each group begins with a block of its own."""
        return (
            ChannelOrder.of_groups(self.channels, self.groups, lanes),
            ChannelOrder.of_groups(self.filters, self.groups, lanes),
        )


def best_group_form(
    shape: GroupedShape,
    windows: Sequence[Window],
    given: ChannelOrder,
    decided: str = "",
    is_plain: bool = False,
    numbers: int = 1,
) -> GroupForm | None:
    """Return the form of a grouped convolution; None if none is better than a scalar kernel.

    Args:
        shape: Channels of the convolution.
        windows: Windows, one for each spatial dimension.
        given: Channel order of the input; the natural one if it is plain.
        decided: Value of a `GroupForm` to use if the convolution has it; "" for the form of least cost.
        is_plain: Whether the input is plain.
        numbers: Numbers that are multiplied as a word.
    """
    costs = form_costs(shape, windows, given, is_plain, numbers)
    if decided and GroupForm(decided) in costs:
        return GroupForm(decided)
    likely = {
        form: cost
        for form, cost in costs.items()
        if cost <= MOST_WASTE or form not in (GroupForm.PADDED, GroupForm.PLAIN)
    }
    return min(likely, key=likely.__getitem__, default=None)


def form_costs(
    shape: GroupedShape,
    windows: Sequence[Window],
    given: ChannelOrder,
    is_plain: bool = False,
    numbers: int = 1,
) -> Mapping[GroupForm, float]:
    """Return the cost of each form that a grouped convolution has, relative to its own multiplications.

    Args:
        shape: Channels of the convolution.
        windows: Windows, one for each spatial dimension.
        given: Channel order of the input; the natural one if it is plain.
        is_plain: Whether the input is plain.
        numbers: Numbers that are multiplied as a word; words are read from blocks.
    """
    lanes = given.lanes
    source, result = shape.padded(lanes)
    waste_of_result = len(result.places) / shape.filters
    costs = {}
    merged = shape.merged(lanes)
    if merged is not None:
        costs[GroupForm.MERGED] = merged * max(1.0, lanes / (merged * shape.written))
    products = shape.written * prod(window.taps / window.stride for window in windows)
    copy_cost = COPY_COST_OF_PLAIN if is_plain else _COPY_COST
    copy = 0.0 if given == source else copy_cost / products
    waste_of_input = len(source.places) / shape.channels if shape.read > lanes else 1.0
    costs[GroupForm.PADDED] = waste_of_result * waste_of_input + copy
    if all(window.is_inside for window in windows):
        is_whole = len(result.places) == shape.filters and not given.is_natural
        costs[GroupForm.TABLE] = 0.0 if is_whole else waste_of_result
        if numbers > 1:
            words = channel_words(given, shape.groups, numbers)
            costs[GroupForm.TABLE] = waste_of_result * words.channels[0].size / shape.read
    if numbers > 1:
        return costs
    if is_plain and shape.read <= MOST_PLAIN_CHANNELS:
        costs[GroupForm.PLAIN] = waste_of_result
    elif is_plain and _fits_in_rows(shape, windows):
        costs[GroupForm.PLAIN] = waste_of_result * ROW_COST
    return costs


def _fits_in_rows(shape: GroupedShape, windows: Sequence[Window]) -> bool:
    """Return whether a group's input stays in a cache, and blocks have no faster algorithm."""
    is_transformed = len(windows) == 2 and all(w.taps == _TRANSFORMED and w.stride == 1 for w in windows)
    is_transformed &= prod(window.count for window in windows) >= _FEWEST_PIXELS
    size = shape.read * prod(window.reach for window in windows) * _ELEMENT_BYTES
    return not is_transformed and size <= _PLAIN_BYTES
