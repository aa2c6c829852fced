"""Convolutions of 3 by 3 by fewer products: Winograd's F(m, 3) along both dimensions, of blocked tensors.

A tile of m by m results is a sum over channels of products of transformed inputs and transformed weights, of
which there are (m + 2) by (m + 2) for each tile: F(4, 3) takes a quarter of the products of a direct
convolution, F(2, 3) 4 of 9. Transforms evaluate polynomials at points, and points of larger numbers cost
accuracy: with 0, +-sqrt(1/2) and +-sqrt(2) the error of F(4, 3) is about twice that of direct sums.
"Fast Algorithms for Convolutional Neural Networks" (Lavin and Gray, CVPR 2016) is the source.

Operations, for tiles t in rows of `columns` tiles:
    rows[n, c, t, i, s, v]    = sum over r of B[i, r] * x[n, c, t // columns * m + r, t % columns * m + s, v]
    input[n, i, j, c, t, v]   = sum over s of B[j, s] * rows[n, c, t, i, s, v]
    product[n, i, j, o, t, v] = sum over c, k of input[n, i, j, c, t, k] * weight[i, j, o, c, k, v]
    half[n, o, t, y, s, v]    = sum over r of A[y, r] * product[n, r, s, o, t, v]
    result[n, o, h, w, v]     = sum over s of A[w % m, s] * half[n, o, tile of (h, w), h % m, s, v]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import equal, select
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    TILE,
    WINOGRAD,
    axis_names,
    blocked_array,
    padded_block,
)
from intarsia.native.te.operators.windows import Window
from intarsia.native.te.tensor import Tensor

TAPS: Final = 3
"""Of a window, along both dimensions."""
_POINTS: Final = {2: (1.0,), 4: (sqrt(0.5), sqrt(2)), 6: (0.5, 1.0, 2.0)}
"""Positive points for each size of a tile; 0, their negatives, and infinity belong to them."""
TILES: Final = tuple(_POINTS)
"""The sizes of tiles."""


@dataclass(frozen=True)
class Transforms:
    """The matrices of F(m, 3).

    Rows of `inputs` belong to points in the order 0, p, -p, ..., infinity.

    Attributes:
        inputs: (m + 2, m + 2), from numbers of the input.
        weights: (m + 2, 3), from weights.
        results: (m, m + 2), to results.
    """

    inputs: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    results: npt.NDArray[np.float64]

    @classmethod
    def of(cls, tile: int) -> Transforms:
        """Those for tiles of a size, by the construction of Toom and Cook.

        Args:
            tile: One of TILES.
        """
        points = [0.0, *(sign * point for point in _POINTS[tile] for sign in (1, -1))]
        extent = tile + TAPS - 1
        inputs, weights = np.zeros((extent, extent)), np.zeros((extent, TAPS))
        results = np.zeros((tile, extent))
        for row, point in enumerate(points):
            others = [each for each in points if each != point]
            inputs[row, : extent - 1] = _polynomial(others)
            weights[row] = point ** np.arange(TAPS) / prod(point - each for each in others)
            results[:, row] = point ** np.arange(tile)
        inputs[-1] = _polynomial(points)
        weights[-1, -1] = results[-1, -1] = 1
        return cls(inputs, weights, results)


def _polynomial(roots: Sequence[float]) -> npt.NDArray[np.float64]:
    """The coefficients of the product of (x - root), that of the constant first; zeros of pairs are exact."""
    found = np.ones(1)
    singles = [each for each in roots if -each not in roots or each == 0]
    for square in {each * each for each in roots if each not in singles}:
        found = np.convolve(found, (-round(square, 15), 0, 1))
    for root in singles:
        found = np.convolve(found, (-root, 1))
    return found


def winograd_weight(weight: npt.NDArray[Any], tile: int, ci: int, lanes: int) -> npt.NDArray[Any]:
    """Weights (M, C, 3, 3) for `winograd_convolution`, transformed in float64.

    Args:
        weight: The weights.
        tile: One of TILES.
        ci: How many channels a block of the input has.
        lanes: How many a block of the result has.

    Returns:
        (m + 2, m + 2, M / lanes, C / ci, ci, lanes).
    """
    matrix = Transforms.of(tile).weights
    moved = np.einsum("ir,js,mcrs->ijmc", matrix, matrix, weight.astype(np.float64), optimize=True)
    by_made = blocked_array(moved.astype(weight.dtype), lanes, axis=2)  # (i, j, M / lanes, C, lanes)
    both = blocked_array(by_made, ci, axis=3)  # (i, j, M / lanes, C / ci, lanes, ci)
    return np.ascontiguousarray(np.swapaxes(both, -1, -2))


def winograd_convolution(
    x: Tensor, weight: Tensor, windows: Sequence[Window], tile: int, name: str
) -> Tensor:
    """A convolution of 3 by 3 with stride 1: (N, M / lanes, H, W, lanes).

    Args:
        x: (N, C / ci, H, W, ci).
        weight: As `winograd_weight` makes it.
        windows: Of rows and columns, without stride or dilation.
        tile: One of TILES.
        name: Of the operation; others have ".pad", ".rows", ".input", ".product" and ".half" behind it.
    """
    matrices = Transforms.of(tile)
    inputs, results = matrices.inputs, matrices.results
    down, across = (-(-window.count // tile) for window in windows)
    wide = [replace(w, count=count * tile) for w, count in zip(windows, (down, across), strict=True)]
    source = padded_block(x, wide, 0.0, f"{name}.pad")
    batch, blocks, ci = x.shape[0], x.shape[1], x.shape[-1]
    made, lanes, extent = weight.shape[2], weight.shape[-1], tile + TAPS - 1
    tiles, steps = down * across, range(extent)

    def row(*at: Expression) -> Expression:
        n, c, t, i, s, v = at
        top, left = t // across * tile, t % across * tile
        return _chosen(
            i, [_input(each, [source[n, c, top + r, left + s, v] for r in steps]) for each in inputs]
        )

    rows = compute((batch, blocks, tiles, extent, extent, ci), row, f"{name}.rows", tuple("nctisv"))

    def moved(*at: Expression) -> Expression:
        n, i, j, c, t, v = at
        return _chosen(j, [_input(each, [rows[n, c, t, i, s, v] for s in steps]) for each in inputs])

    moved_inputs = compute(
        (batch, extent, extent, blocks, tiles, ci), moved, f"{name}.input", tuple("nijctv")
    )
    block, channel = reduce_axis(blocks, "rb"), reduce_axis(ci, "rc")

    def product(*at: Expression) -> Reduction:
        n, i, j, o, t, v = at
        value = moved_inputs[n, i, j, block, t, channel] * weight[i, j, o, block, channel, v]
        return functions.sum(value, (block, channel))

    shape = (batch, extent, extent, made, tiles, lanes)
    products = compute(shape, product, f"{name}.product", tuple("nijotv"))

    def half(*at: Expression) -> Expression:
        n, o, t, y, s, v = at
        return _chosen(y, [_result(each, [products[n, r, s, o, t, v] for r in steps]) for each in results])

    halves = compute((batch, made, tiles, tile, extent, lanes), half, f"{name}.half", tuple("notysv"))

    def element(*at: Expression) -> Expression:
        n, o, h, w, v = at
        t = h // tile * across + w // tile
        return _chosen(
            w % tile, [_result(each, [halves[n, o, t, h % tile, s, v] for s in steps]) for each in results]
        )

    counts = tuple(window.count for window in windows)
    return compute(
        (batch, made, *counts, lanes), element, name, axis_names(2), {BLOCKED: WINOGRAD, TILE: tile}
    )


def _chosen(place: Expression, choices: Sequence[Expression]) -> Expression:
    """One of several values by its place; the loop over places is unrolled, so that no choice is left."""
    *others, found = choices
    for each in reversed(range(len(others))):
        found = select(equal(place, each), others[each], found)
    return found


def _input(row: npt.NDArray[np.float64], values: Sequence[Expression]) -> Expression:
    """A row of the matrix of inputs times values.

    Sums of even and of odd values are apart, and begin with 1: rows of a point and of its negative differ in
    the factor of the odd one only.
    """
    sums = [
        (
            row[first::2][row[first::2] != 0],
            [v for v, c in zip(values[first::2], row[first::2], strict=True) if c],
        )
        for first in (0, 1)
    ]
    found: Expression | None = None
    for factors, chosen in sums:
        if chosen:
            lead = float(factors[-1])
            inner = chosen[-1]
            for factor, value in zip(factors[:-1], chosen[:-1], strict=True):
                inner = _plus(inner, value, float(factor) / lead)
            found = _times(inner, lead) if found is None else _plus(found, inner, lead)
    assert found is not None, "no row is zero"
    return found


def _result(row: npt.NDArray[np.float64], values: Sequence[Expression]) -> Expression:
    """A row of the matrix of results times values.

    All rows have the sum and the difference in common of what belongs to a point and to its negative.
    """
    found = None if row[0] == 0 else values[0]
    for place in range(1, len(row) - 1, 2):
        first, second = values[place : place + 2]
        pair = first + second if row[place] == row[place + 1] else first - second
        found = _times(pair, row[place]) if found is None else _plus(found, pair, row[place])
    assert found is not None, "there are points"
    return found + values[-1] if row[-1] else found


def _plus(found: Expression, value: Expression, factor: float) -> Expression:
    if factor == 1:
        return found + value
    return found - value if factor == -1 else found + value * float(factor)


def _times(value: Expression, factor: float) -> Expression:
    return value if factor == 1 else value * float(factor)
