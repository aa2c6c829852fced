"""By which algorithm a convolution of a blocked tensor is computed: directly, or by Winograd's transforms."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import Final

from intarsia.native.te.operators.windows import Window
from intarsia.native.te.operators.winograd import TAPS

# Costs in products, by measurement on convolutions of 7 to 224 pixels in a row with 16 to 512 channels.
_WEIGHT_COST: Final = 32.0
"""What a weight costs that comes from memory, as all do in a network of some size."""
_POINT_COST: Final = 16.0
"""What the transforms of a number of an input or a result cost."""
_LEAST_GAIN: Final = 1.1
"""Transforms must be estimated to be so many times as fast, as the estimate is none better."""


class ConvolutionAlgorithm(Enum):
    """How convolutions are computed that can be computed in several ways.

    Attributes:
        AUTO: By the one that is estimated to be fastest for each, of those that are about as accurate.
        DIRECT: As sums of products of inputs and weights.
        WINOGRAD_2: By F(2, 3), where it is possible; else directly.
        WINOGRAD_4: By F(4, 3).
        WINOGRAD_6: By F(6, 3), whose error is about ten times that of direct sums.
    """

    AUTO = "auto"
    DIRECT = "direct"
    WINOGRAD_2 = "winograd_2"
    WINOGRAD_4 = "winograd_4"
    WINOGRAD_6 = "winograd_6"

    @property
    def tile(self) -> int:
        """The size of Winograd's tiles; 0 if it has none."""
        return int(self.value[-1]) if self.value.startswith("winograd") else 0


_CHOSEN: Final = (ConvolutionAlgorithm.WINOGRAD_2, ConvolutionAlgorithm.WINOGRAD_4)
"""What AUTO may choose: F(6, 3) is not as accurate."""


def may_be_winograd(groups: int, windows: Sequence[Window]) -> bool:
    """Whether there are transforms for a convolution: all channels, and windows of 3 by 3 side by side."""
    return (
        groups == 1
        and len(windows) == 2
        and all(window.taps == TAPS and window.stride == window.dilation == 1 for window in windows)
    )


def winograd_tile(algorithm: ConvolutionAlgorithm, made: int, read: int, windows: Sequence[Window]) -> int:
    """The size of tiles for a convolution that may be one by transforms; 0 if it is computed directly.

    Args:
        algorithm: What is wanted.
        made: Channels of the result.
        read: Channels of the input.
        windows: Along both dimensions.
    """
    if algorithm is not ConvolutionAlgorithm.AUTO:
        return algorithm.tile
    pixels = prod(window.count for window in windows)
    direct = made * read * TAPS * TAPS * (pixels + _WEIGHT_COST)
    costs = {each.tile: _cost(each.tile, made, read, windows) for each in _CHOSEN}
    tile = min(costs, key=costs.__getitem__)
    return tile if costs[tile] * _LEAST_GAIN < direct else 0


def _cost(tile: int, made: int, read: int, windows: Sequence[Window]) -> float:
    """Of products, of reading weights, and of transforms."""
    tiles = prod(-(-window.count // tile) for window in windows)
    points = (tile + TAPS - 1) ** 2
    return points * (made * read * (tiles + _WEIGHT_COST) + tiles * (made + read) * _POINT_COST)
