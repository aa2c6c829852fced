"""Transposed convolutions from one pixel into blocks, and from blocks to a few channels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import if_then_else, logical_and
from intarsia.native.te.operators.blocked_convolution import blocked_convolution, pack_weight
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    OVERLAPPING,
    PROJECTION,
    axis_names,
    blocked_array,
)
from intarsia.native.te.operators.upsampling import Upsampling, weight_of_taps
from intarsia.native.te.operators.windows import Window, spatial_names
from intarsia.native.te.tensor import Tensor


def transposed_convolution_of_pixel(x: Tensor, weight: Tensor, name: str) -> Tensor:
    """Declare a blocked transposed convolution of an image of one pixel: each weight is used once.

    Args:
        x: (N, C, 1 ...), plain.
        weight: (M / lanes, C, counts ..., lanes), as `pack_weight_of_pixel` makes it.
        name: Name of the result.
    """
    channel = reduce_axis(x.shape[1], "rc")
    zeros = (0,) * (len(x.shape) - 2)

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        return functions.sum(x[(n, channel, *zeros)] * weight[(o, channel, *rest)], channel)

    shape = (x.shape[0], weight.shape[0], *weight.shape[2:])
    return compute(shape, element, name, axis_names(len(zeros)), {BLOCKED: PROJECTION})


def pack_weight_of_pixel(
    weight: npt.NDArray[Any], dimensions: Sequence[Upsampling], lanes: int
) -> npt.NDArray[Any]:
    """Pack weights (C, M, taps ...) as (M / lanes, C, counts ..., lanes): those that reach the results."""
    taps = [
        [
            position if position < dimension.taps else None
            for position in range(dimension.begin, dimension.begin + dimension.count)
        ]
        for dimension in dimensions
    ]
    return blocked_array(weight_of_taps(weight, taps), lanes, axis=0)


def transposed_convolution_to_few(
    x: Tensor, weight: Tensor, channels: int, dimensions: Sequence[Upsampling], name: str
) -> Tensor:
    """Declare a plain result (N, channels, counts ...) of a blocked input.

    First the products of each element with all taps of all results, which fill whole blocks; then the sums
    of those that reach the same result.

    Args:
        x: (N, C / ci, extents ..., ci).
        weight: Weights from `pack_weight_to_few`.
        channels: Number of channels of the result.
        dimensions: Upsamplings, one for each spatial dimension.
        name: Name of the result; ".products" is appended for the products.
    """
    windows = [Window(dimension.extent, dimension.extent, 1, 1, 1, 0, 0) for dimension in dimensions]
    products = blocked_convolution(x, weight, windows, f"{name}.products")
    lanes = products.shape[-1]

    def reaching(
        n: Expression, m: Expression, positions: Sequence[Expression], offsets: Sequence[int]
    ) -> Expression:
        column: Expression | int = 0
        conditions, elements = [], []
        for dimension, position, offset in zip(dimensions, positions, offsets, strict=True):
            column = column * dimension.taps + dimension.tap(position, offset)
            conditions += dimension.conditions(position, offset)
            elements.append(dimension.element(position, offset))
        column = column * channels + m
        summand = products[(n, column // lanes, *elements, column % lanes)]
        return if_then_else(logical_and(*conditions), summand, 0.0) if conditions else summand

    def element(n: Expression, m: Expression, *places: Expression) -> Expression:
        offsets = product(*(range(dimension.phase_taps) for dimension in dimensions))
        return reduce(add, (reaching(n, m, places, offset) for offset in offsets))

    shape = (x.shape[0], channels, *(dimension.count for dimension in dimensions))
    strides = tuple(dimension.stride for dimension in dimensions)
    names = ("n", "m", *spatial_names(len(dimensions)))
    return compute(shape, element, name, names, {OVERLAPPING: strides})


def pack_weight_to_few(weight: npt.NDArray[Any], ci: int, lanes: int) -> npt.NDArray[Any]:
    """Pack weights (C, M, taps ...) for `transposed_convolution_to_few`.

    Args:
        weight: The weights.
        ci: Channels in a block of the input.
        lanes: Channels in a block of the products.
    """
    read, _, *taps = weight.shape
    rows = np.moveaxis(weight, 1, -1).reshape(read, -1)
    return pack_weight(np.ascontiguousarray(rows.T).reshape(-1, read, *(1 for _ in taps)), ci, lanes)
