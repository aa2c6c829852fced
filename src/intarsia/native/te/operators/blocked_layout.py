"""The blocked layout (N, C / lanes, spatial ..., lanes): neighbouring channels side by side in a vector.

Channels beyond C, which fill the last block, hold what their producers leave there: zeros behind convolutions
with packed weights and bias, and what a function makes of zeros behind others. What sums over channels has
zero weights for them, so they must be finite: a quotient of two such tensors is not for this layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression, Operand
from intarsia.native.te.functions import if_then_else, logical_and
from intarsia.native.te.operators.index_arithmetic import scaled
from intarsia.native.te.operators.windows import Window, spatial_names
from intarsia.native.te.tensor import Tensor

BLOCKED: Final = "blocked"
"""Attribute of operations on blocked tensors that have schedules of their own: which of the kinds below."""

CONVOLUTION: Final = "convolution"
CHANNELWISE: Final = "channelwise"
GROUPED: Final = "grouped"
GLOBAL_POOL: Final = "global_pool"
PADDING: Final = "padding"
TRANSPOSED: Final = "transposed"
PROJECTION: Final = "projection"
WINOGRAD: Final = "winograd"

OWN_BLOCKS: Final = "own_blocks"
"""Attribute of convolutions in groups: how many blocks of results a group has."""

TILE: Final = "tile"
"""Attribute of convolutions by Winograd's transforms: how many results a tile has along each dimension."""

SHARES_ROWS: Final = "shares_rows"
"""Attribute of channelwise operations between convolutions, whose rows threads share: 1."""

OVERLAPPING: Final = "overlapping"
"""Attribute of operations whose summands overlap in the results: the strides of the summands."""


def blocked_array(array: npt.NDArray[Any], lanes: int, axis: int = 1) -> npt.NDArray[Any]:
    """Cut an axis of an array into blocks; the lanes become the last axis, and zeros fill the last block.

    Args:
        array: (N, C, spatial ...), or a bias (C,) with axis 0.
        lanes: Channels in a block.
        axis: Axis of the channels.
    """
    channels = array.shape[axis]
    blocks = -(-channels // lanes)
    widths = [(0, blocks * lanes - channels if dimension == axis else 0) for dimension in range(array.ndim)]
    cut = np.pad(array, widths).reshape(*array.shape[:axis], blocks, lanes, *array.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(cut, axis + 1, -1))


def plain_array(array: npt.NDArray[Any], channels: int) -> npt.NDArray[Any]:
    """Return an array (N, C, spatial ...) of a blocked one."""
    joined = np.moveaxis(array, -1, 2)
    flat = joined.reshape(array.shape[0], array.shape[1] * array.shape[-1], *array.shape[2:-1])
    return np.ascontiguousarray(flat[:, :channels])


def to_blocked(x: Tensor, lanes: int, name: str, groups: int = 1) -> Tensor:
    """Declare a tensor (N, C, spatial ...) in blocks, with zeros in the rest of the last one of each group.

    The result is (N, C / lanes, spatial ..., lanes). If there are several groups, the blocks have an axis of
    groups and one of the blocks of a group.

    Args:
        x: The tensor.
        lanes: Channels in a block.
        name: Name of the operation.
        groups: Number of groups of channels, each of which begins with a new block.
    """
    batch, channels, *spatial = x.shape
    group_channels = channels // groups

    def element(n: Expression, *rest: Expression) -> Expression:
        (*before, o), pixel, lane = rest[: -len(spatial) - 1], rest[-len(spatial) - 1 : -1], rest[-1]
        channel = o * lanes + lane
        first = before[0] * group_channels if before else 0
        inside = x[(n, channel + first, *pixel)]
        return inside if group_channels % lanes == 0 else if_then_else(channel < group_channels, inside, 0)

    group_axis, group_name = ((groups,), ("g",)) if groups > 1 else ((), ())
    shape = (batch, *group_axis, -(-group_channels // lanes), *spatial, lanes)
    batch_name, *names = axis_names(len(spatial))
    return compute(shape, element, name, (batch_name, *group_name, *names))


def from_blocked(x: Tensor, channels: int, name: str) -> Tensor:
    """Declare a blocked tensor as (N, C, spatial ...)."""
    batch, _, *spatial, lanes = x.shape

    def element(n: Expression, c: Expression, *rest: Expression) -> Expression:
        return x[(n, c // lanes, *rest, c % lanes)]

    return compute((batch, channels, *spatial), element, name, ("n", "c", *spatial_names(len(spatial))))


def blocked_bias(x: Tensor, bias: Tensor, name: str) -> Tensor:
    """Declare a blocked tensor with a number added to each channel; the bias is (C / lanes, lanes)."""
    names = axis_names(len(x.shape) - 3)
    return compute(x.shape, lambda *i: x[i] + bias[i[1], i[-1]], name, names)


def padded_block(
    x: Tensor, windows: Sequence[Window], value: Operand, name: str, cut: tuple[int, int] | None = None
) -> Tensor:
    """Declare a tensor padded as far as windows reach in its spatial dimensions; itself without padding.

    Args:
        x: Blocked tensor, or a plain one without lanes.
        windows: Windows, one for each spatial dimension.
        value: Value of the padding.
        name: Name of the operation.
        cut: Number of blocks of the copy, and of channels in each, a divisor of those of the tensor's blocks;
            those of the tensor if not given.
    """
    if all(window.is_inside for window in windows):
        return x
    behind = 2 + len(windows)

    def element(*indices: Expression) -> Expression:
        spatial = list(zip(windows, indices[2:behind], strict=True))
        conditions = [condition for window, position in spatial for condition in window.holds(position)]
        element_indices = [
            position - window.begin if window.begin else position for window, position in spatial
        ]
        block, *lane = indices[1], *indices[behind:]
        if parts > 1:
            block, lane = block // parts, [block % parts * lanes[0] + lane[0]]
        inside = x[(indices[0], block, *element_indices, *lane)]
        return if_then_else(logical_and(*conditions), inside, value) if conditions else inside

    blocks, *lanes = cut or (x.shape[1], *x.shape[behind:])
    parts = x.shape[behind] // lanes[0] if lanes else 1
    shape = (x.shape[0], blocks, *(window.reach for window in windows), *lanes)
    return compute(shape, element, name, attrs={BLOCKED: PADDING})


def picks_pixels(windows: Sequence[Window]) -> bool:
    """Return whether a convolution reads some pixels only, each with its one tap."""
    is_pointwise = all(window.taps == 1 and window.is_inside for window in windows)
    return is_pointwise and any(window.stride > 1 for window in windows)


def picked_pixels(x: Tensor, windows: Sequence[Window], name: str) -> tuple[Tensor, tuple[Window, ...]]:
    """Declare the pixels that a pointwise convolution with strides reads, next to each other.

    Args:
        x: Blocked tensor.
        windows: Windows of one tap, one for each spatial dimension.
        name: Name of the operation.

    Returns:
        The tensor, and windows without strides over it.
    """
    behind = 2 + len(windows)

    def element(*indices: Expression) -> Expression:
        at = [scaled(index, window.stride) for index, window in zip(indices[2:behind], windows, strict=True)]
        return x[(*indices[:2], *at, *indices[behind:])]

    counts = [window.count for window in windows]
    tensor = compute((*x.shape[:2], *counts, *x.shape[behind:]), element, name, attrs={BLOCKED: PADDING})
    return tensor, tuple(Window(count, count, 1, 1, 1, 0, 0) for count in counts)


def axis_names(rank: int) -> tuple[str, ...]:
    """Return the axis names of a blocked tensor: n, o, h and w, v (the lane)."""
    return ("n", "o", *spatial_names(rank), "v")
