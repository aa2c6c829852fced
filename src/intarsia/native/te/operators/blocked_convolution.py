"""Convolutions of blocked tensors, with weights that are packed when a program is built."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import AttrValue
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import if_then_else, logical_and
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    CHANNELWISE,
    CONVOLUTION,
    GROUPED,
    OWN_BLOCKS,
    axis_names,
    blocked_array,
    padded_block,
    picked_pixels,
    picks_pixels,
)
from intarsia.native.te.operators.windows import Window, tap_axes, tap_indices
from intarsia.native.te.tensor import Tensor

_NARROW: Final = 3
"""Most result blocks of a group that is scheduled in groups; wider groups run like plain convolutions, whose
tiles stay within a group."""
_MANY: Final = 64
"""Number of filters from which pixels that lie apart are first copied together: each pixel is read once for
each of them, and half of a cache line is of no use."""

_LEAST_BLOCK: Final = 4
"""Minimum number of channels in a block of the weights."""
_LEAST_GAIN: Final = 1.1
"""Ratio of the products from which blocks of the weights are smaller than those of the input."""


def blocked_convolution(
    x: Tensor,
    weight: Tensor,
    windows: Sequence[Window],
    name: str,
    in_per_out: tuple[int, int] = (0, 1),
    padding: float = 0.0,
    product: Callable[[Expression, Expression], Expression] = operator.mul,
) -> Tensor:
    """Declare the reduction of a convolution: (N, M / lanes, spatial ..., lanes).

    Args:
        x: (N, C / ci, spatial ..., ci).
        weight: (M / lanes, blocks, taps ..., channels of a block, lanes), as `pack_weight` makes it. A block
            has ci channels, fewer if there is one block, or a divisor of ci, so that fewer zeros are summed.
        windows: Windows, one for each spatial dimension.
        name: Name of the operation; ".pad" is appended for the padded input.
        in_per_out: (f, m): block o of the results reads input blocks from o // m * f on (`blocks_of_groups`).
        padding: Value of elements beyond the image.
        product: Product of an input and a weight; they have one type.
    """
    count, step = in_per_out
    if picks_pixels(windows) and not count and weight.shape[0] * weight.shape[-1] >= _MANY:
        source, windows = picked_pixels(x, windows, f"{name}.pad")
    else:
        cut = (weight.shape[1], weight.shape[-2]) if weight.shape[1] > x.shape[1] else None
        source = padded_block(x, windows, padding, f"{name}.pad", cut)
    is_cut = weight.shape[1] > source.shape[1] and not count
    parts = source.shape[-1] // weight.shape[-2] if is_cut else 1  # of a block that is not copied
    block, channel, taps = (
        reduce_axis(weight.shape[1], "rb"),
        reduce_axis(weight.shape[-2], "rc"),
        tap_axes(windows),
    )

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        first = o // step * count if count else 0
        at = tap_indices(windows, rest[:-1], taps)
        if parts > 1:
            begin = block.expression % parts * weight.shape[-2]
            read = source[(n, block.expression // parts, *at, begin + channel)]
        else:
            read = source[(n, block.expression + first, *at, channel)]
        value = product(read, weight[(o, block, *taps, channel, rest[-1])])
        return functions.sum(value, (block, *taps, channel))

    shape = (x.shape[0], weight.shape[0], *(window.count for window in windows), weight.shape[-1])
    is_narrow = count > 0 and step <= _NARROW
    attrs: dict[str, AttrValue] = {BLOCKED: GROUPED if is_narrow else CONVOLUTION}
    if count:
        attrs[OWN_BLOCKS] = step
    return compute(shape, element, name, axis_names(len(windows)), attrs)


def convolution_of_plain(
    x: Tensor, weight: Tensor, windows: Sequence[Window], name: str, own_blocks: int = 0
) -> Tensor:
    """Declare `blocked_convolution` of an input (N, C, spatial ...) with few channels for each group.

    Args:
        x: The input.
        weight: (M / lanes, C / groups, taps ..., lanes), as `pack_weight_of_plain` makes it.
        windows: Windows, one for each spatial dimension.
        name: Name of the operation.
        own_blocks: Number of blocks of result channels of a group; unused if there is one group.
    """
    source = padded_block(x, windows, 0.0, f"{name}.pad")
    count = weight.shape[1]
    channel, taps = reduce_axis(count, "rc"), tap_axes(windows)
    is_grouped = count < x.shape[1]

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        at = channel.expression + o // own_blocks * count if is_grouped else channel.expression
        read = source[(n, at, *tap_indices(windows, rest[:-1], taps))]
        return functions.sum(read * weight[(o, channel, *taps, rest[-1])], (channel, *taps))

    shape = (x.shape[0], weight.shape[0], *(window.count for window in windows), weight.shape[-1])
    is_narrow = is_grouped and own_blocks <= _NARROW
    attrs: dict[str, AttrValue] = {BLOCKED: GROUPED if is_narrow else CONVOLUTION}
    if is_grouped:
        attrs[OWN_BLOCKS] = own_blocks
    return compute(shape, element, name, axis_names(len(windows)), attrs)


def depthwise_convolution(x: Tensor, weight: Tensor, windows: Sequence[Window], name: str) -> Tensor:
    """Declare a convolution of each channel on its own; taps beyond the image are left out.

    Args:
        x: (N, C / lanes, spatial ..., lanes).
        weight: (C / lanes, taps ..., lanes), as `pack_depthwise_weight` makes it.
        windows: Windows, one for each spatial dimension.
        name: Name of the operation.
    """
    taps = tap_axes(windows)

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        positions = tap_indices(windows, rest[:-1], taps)
        conditions = [
            condition
            for w, position in zip(windows, positions, strict=True)
            for condition in w.holds(position)
        ]
        at = [
            position - w.begin if w.begin else position
            for w, position in zip(windows, positions, strict=True)
        ]
        product = x[(n, o, *at, rest[-1])] * weight[(o, *taps, rest[-1])]
        clipped = if_then_else(logical_and(*conditions), product, 0.0) if conditions else product
        return functions.sum(clipped, taps)

    shape = (*x.shape[:2], *(window.count for window in windows), x.shape[-1])
    return compute(shape, element, name, axis_names(len(windows)), {BLOCKED: CHANNELWISE})


def blocks_of_groups(channels: int, outputs: int, groups: int, ci: int, lanes: int) -> tuple[int, int] | None:
    """Return which input blocks a block of results reads: the `in_per_out` of `blocked_convolution`.

    A block of results either lies in one group, or holds several whole groups. Then its weights are a block
    diagonal of theirs: products with zeros are the price of whole vectors.

    Args:
        channels: Number of input channels, all groups together.
        outputs: Number of output channels, all groups together.
        groups: Number of groups.
        ci: Channels in a block of the input.
        lanes: Channels in a block of the result.

    Returns:
        None if blocks and groups do not fit.
    """
    if groups == 1:
        return 0, 1
    group_inputs, group_outputs = channels // groups, outputs // groups
    if group_outputs % lanes == 0 and group_inputs % ci == 0:
        return group_inputs // ci, group_outputs // lanes
    if (
        lanes % group_outputs == 0
        and outputs % lanes == 0
        and (lanes // group_outputs * group_inputs) % ci == 0
    ):
        return lanes // group_outputs * group_inputs // ci, 1
    return None


def filled_block(channels: int, lanes: int) -> int:
    """Return the number of channels in a block of the weights.

    They are smaller than those of the input where those would sum many zeros: 24 channels are three blocks
    of 8, not two of 16.

    Args:
        channels: Number of input channels.
        lanes: Number of channels in a block of the input.
    """
    sizes = [lanes // parts for parts in (1, 2, 4) if lanes % parts == 0 and lanes // parts >= _LEAST_BLOCK]
    summed = {size: -(-channels // size) * size for size in sizes}
    best = min(sizes, key=lambda size: summed[size], default=lanes)  # of equal ones, the largest
    is_worth = channels > lanes and summed[best] * _LEAST_GAIN <= summed[lanes]
    return best if is_worth else lanes


def pack_weight(weight: npt.NDArray[Any], ci: int, lanes: int, groups: int = 1) -> npt.NDArray[Any]:
    """Pack weights (M, C / groups, taps ...) for `blocked_convolution`; zeros fill incomplete blocks.

    Of a group with fewer channels than a block there are only these: zeros would be multiplied too.

    Args:
        weight: The weights.
        ci: Channels in a block of the input.
        lanes: Channels in a block of the result.
        groups: Number of groups; with more than one, `blocks_of_groups` must not be None.
    """
    group_outputs = weight.shape[0] // groups
    if groups > 1 and group_outputs % lanes:
        weight = _block_diagonal(weight, lanes, group_outputs)
    by_made = blocked_array(weight, lanes, axis=0)  # (M / lanes, C, taps ..., lanes)
    both = blocked_array(
        by_made, min(ci, weight.shape[1]), axis=1
    )  # (M / lanes, C / ci, taps ..., lanes, ci)
    return np.ascontiguousarray(np.swapaxes(both, -1, -2))


def pack_weight_of_plain(weight: npt.NDArray[Any], lanes: int) -> npt.NDArray[Any]:
    """Pack weights (M, C, taps ...) for `convolution_of_plain`."""
    return blocked_array(weight, lanes, axis=0)


def pack_depthwise_weight(weight: npt.NDArray[Any], lanes: int) -> npt.NDArray[Any]:
    """Pack weights (C, 1, taps ...) for `depthwise_convolution`."""
    return blocked_array(weight[:, 0], lanes, axis=0)


def _block_diagonal(weight: npt.NDArray[Any], lanes: int, group_outputs: int) -> npt.NDArray[Any]:
    """Spread weights of groups over all channels that the groups of one block read, with zeros between."""
    outputs, read = weight.shape[:2]
    inside = lanes // group_outputs
    wide = np.zeros((outputs, inside * read, *weight.shape[2:]), weight.dtype)
    for output in range(outputs):
        first = output // group_outputs % inside * read
        wide[output, first : first + read] = weight[output]
    return wide
