"""Reordering of the channels of blocked tensors, by tables of the channels' offsets."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt

from intarsia.ir import DType
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import maximum, select
from intarsia.native.te.operators.blocked_layout import axis_names
from intarsia.native.te.operators.windows import spatial_names
from intarsia.native.te.tensor import Tensor


def blocked_by_table(x: Tensor, table: Tensor, spatial: tuple[int, ...], lanes: int, name: str) -> Tensor:
    """Declare a blocked tensor (N, blocks, spatial ..., lanes) with channels in the order of a table.

    Args:
        x: (N, elements of an image), blocked.
        table: (blocks, lanes): offset in an image of the first pixel of each channel; negative for zeros. Its
            blocks may be of another size than those of `x`.
        spatial: Spatial extents.
        lanes: Channels in a block of `x`.
        name: Name of the operation.
    """

    def element(n: Expression, o: Expression, *rest: Expression) -> Expression:
        first = table[o, rest[-1]]
        read = x[n, maximum(first, 0).astype(DType.INT64) + _pixel(rest[:-1], spatial) * lanes]
        return select(first >= 0, read, 0.0)

    return compute(
        (x.shape[0], table.shape[0], *spatial, table.shape[1]), element, name, axis_names(len(spatial))
    )


def plain_by_table(x: Tensor, table: Tensor, spatial: tuple[int, ...], lanes: int, name: str) -> Tensor:
    """Declare a blocked tensor as (N, C, spatial ...).

    Args:
        x: (N, elements of an image), blocked.
        table: (C,): offset in an image of the first pixel of each channel.
        spatial: Spatial extents.
        lanes: Channels in a block.
        name: Name of the operation.
    """

    def element(n: Expression, c: Expression, *rest: Expression) -> Expression:
        return x[n, table[c].astype(DType.INT64) + _pixel(rest, spatial) * lanes]

    names = ("n", "c", *spatial_names(len(spatial)))
    return compute((x.shape[0], table.shape[0], *spatial), element, name, names)


def first_pixels(places: tuple[int, ...], pixels: int, lanes: int) -> npt.NDArray[np.int32]:
    """Return the offset in a blocked image of each channel's first pixel; negative places stay negative.

    Args:
        places: Positions of the channels, counted through all blocks.
        pixels: Number of pixels of the image.
        lanes: Channels in a block.
    """
    given = np.array(places, np.int32)
    block, lane = np.divmod(given, lanes)
    offsets: npt.NDArray[np.int32] = np.where(given < 0, given, block * (pixels * lanes) + lane)
    return offsets


def _pixel(indices: tuple[Expression, ...], spatial: tuple[int, ...]) -> Expression:
    """Return the number of a pixel in its image."""
    steps = [prod(spatial[axis + 1 :]) for axis in range(len(spatial))]
    total, *rest = [index * step for index, step in zip(indices, steps, strict=True)]
    for term in rest:
        total = total + term
    return total
