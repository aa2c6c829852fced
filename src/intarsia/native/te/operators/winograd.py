"""Convolutions of 3 by 3 with fewer products: Winograd's F(m, 3) along both dimensions, of blocked tensors.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import AttrValue
from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, placeholder, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import equal, select
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    OWN_BLOCKS,
    TILE,
    WINOGRAD,
    axis_names,
    padded_block,
)
from intarsia.native.te.operators.windows import Window
from intarsia.native.te.tensor import Tensor
from intarsia.support.page_memory import allocate_pages

TAPS: Final = 3
"""Extent of a window, along both dimensions."""
_POINTS: Final = {2: (1.0,), 4: (sqrt(0.5), sqrt(2)), 6: (0.5, 1.0, 2.0)}
"""Positive points for each size of a tile; 0, their negatives, and infinity belong to them."""
TILES: Final = tuple(_POINTS)
"""The sizes of tiles."""
_MOST_OF_ONE_THREAD: Final = 1 << 17
"""Multiplications of a product that BLAS does in one thread; threads that wait for each other in a core that
others use took up to fifty times as long for the products here."""


@dataclass(frozen=True)
class Transforms:
    """The matrices of F(m, 3).

    Rows of `inputs` belong to points in the order 0, p, -p, ..., infinity.

    Attributes:
        inputs: Matrix (m + 2, m + 2) that transforms inputs.
        weights: Matrix (m + 2, 3) that transforms weights.
        results: Matrix (m, m + 2) that transforms products to results.
    """

    inputs: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    results: npt.NDArray[np.float64]

    @classmethod
    def of(cls, tile: int) -> Transforms:
        """Return the matrices for tiles of a size, by the construction of Toom and Cook.

        Args:
            tile: Size of a tile, one of TILES.
        """
        points = [0.0, *(sign * point for point in _POINTS[tile] for sign in (1, -1))]
        extent = tile + TAPS - 1
        inputs, weights = np.zeros((extent, extent)), np.zeros((extent, TAPS))
        results = np.zeros((tile, extent))
        for row, point in enumerate(points):
            others = [other for other in points if other != point]
            inputs[row, : extent - 1] = _polynomial(others)
            # Toom-Cook puts the denominators of the interpolation into the weights, which are packed once.
            weights[row] = point ** np.arange(TAPS) / prod(point - other for other in others)
            results[:, row] = point ** np.arange(tile)
        # The point at infinity picks the leading coefficients.
        inputs[-1] = _polynomial(points)
        weights[-1, -1] = results[-1, -1] = 1
        return cls(inputs, weights, results)


def _polynomial(roots: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the coefficients of the product of (x - root), the constant first; pairs give exact zeros."""
    coefficients = np.ones(1)
    singles = [root for root in roots if -root not in roots or root == 0]
    # (x - p)(x + p) = x**2 - p**2 has an exact zero; rounding makes squares of the roots of 1/2 and 2 exact.
    for square in {root * root for root in roots if root not in singles}:
        coefficients = np.convolve(coefficients, (-round(square, 15), 0, 1))
    for root in singles:
        coefficients = np.convolve(coefficients, (-root, 1))
    return coefficients


@cache
def transform_operations(tile: int) -> tuple[int, int]:
    """Return the least instructions of an input tile's transform and of a result tile's, for each channel.

    An operation that several rows share counts once. Each multiplication is fused with an addition. Additions
    that are left count only where they are more than the multiplications: there are CPUs with pipes for them.

    Args:
        tile: Size of a tile, one of TILES.
    """
    matrices = Transforms.of(tile)
    of_input, of_result = (
        _line_operations(matrix, transformed)
        for matrix, transformed in ((matrices.inputs, _input), (matrices.results, _result))
    )
    extent = tile + TAPS - 1
    # Inputs: all columns, then all rows; results: all columns, then the rows that are left.
    return 2 * extent * of_input, (extent + tile) * of_result


def _line_operations(
    matrix: npt.NDArray[np.float64], transformed: Callable[[Any, list[Expression]], Expression]
) -> int:
    line = placeholder(matrix.shape[1:])
    values = [line[position] for position in range(matrix.shape[1])]
    parts = {part for row in matrix for part, _ in scalar_post_order(transformed(row, values).scalar)}
    operators = [part.op for part in parts if isinstance(part, Arith)]
    products = operators.count(ArithOp.MUL)
    return max(products, len(operators) - 2 * products)


def winograd_weight(weight: npt.NDArray[Any], tile: int, ci: int, lanes: int) -> npt.NDArray[Any]:
    """Transform weights (M, C, 3, 3) for `winograd_convolution`, in float64.

    Args:
        weight: The weights; C is the number of channels of a group.
        tile: Size of a tile, one of TILES.
        ci: Channels in a block of the input.
        lanes: Channels in a block of the result.

    Returns:
        (m + 2, m + 2, M / lanes, C / ci, ci, lanes).
    """
    matrix = Transforms.of(tile).weights
    both = np.kron(matrix, matrix)  # (m + 2) * (m + 2) rows, a column for each tap
    results, read = weight.shape[:2]
    blocks, below = -(-results // lanes), -(-read // ci)
    result: npt.NDArray[Any] = allocate_pages(both.shape[0] * blocks * below * ci * lanes * weight.itemsize)
    result = result.view(weight.dtype).reshape(both.shape[0], blocks, below, ci, lanes)
    taps = np.zeros((both.shape[1], below * ci, lanes))
    transformed = np.empty((both.shape[0], below * ci * lanes))
    width = _MOST_OF_ONE_THREAD // both.size
    flat = weight.reshape(results, read, both.shape[1])
    # One product for each block of results: what it reads and computes stays in the cache.
    for block in range(blocks):
        part = flat[block * lanes : (block + 1) * lanes]
        taps[:, :read, : len(part)] = part.transpose(2, 1, 0)
        taps[:, :, len(part) :] = 0
        columns = taps.reshape(len(taps), -1)
        for begin in range(0, columns.shape[1], width):
            part_of_columns = slice(begin, begin + width)
            np.matmul(both, columns[:, part_of_columns], out=transformed[:, part_of_columns])
        result[:, block] = transformed.reshape(-1, below, ci, lanes)
    return result.reshape(len(matrix), len(matrix), blocks, below, ci, lanes)


def winograd_convolution(
    x: Tensor,
    weight: Tensor,
    windows: Sequence[Window],
    tile: int,
    name: str,
    in_per_out: tuple[int, int] = (0, 1),
) -> Tensor:
    """Declare a convolution of 3 by 3 with stride 1: (N, M / lanes, H, W, lanes).

    Args:
        x: (N, C / ci, H, W, ci).
        weight: Weights from `winograd_weight`.
        windows: Windows of rows and columns, without stride or dilation.
        tile: Size of a tile, one of TILES.
        name: Name of the operation; other stages append ".pad", ".rows", ".input", ".product" and ".half".
        in_per_out: (f, m): block o of the results reads input blocks from o // m * f on (`blocks_of_groups`).
    """
    matrices = Transforms.of(tile)
    down, across = (-(-window.count // tile) for window in windows)
    wide = [replace(w, count=count * tile) for w, count in zip(windows, (down, across), strict=True)]
    source = padded_block(x, wide, 0.0, f"{name}.pad")
    inputs = _transformed_inputs(source, matrices, (down, across), name)
    products = _products(inputs, weight, in_per_out, name)
    halves = _half_results(products, matrices, name)

    def element(*at: Expression) -> Expression:
        n, o, h, w, v = at
        t = h // tile * across + w // tile
        return _result_at(w % tile, matrices, lambda s: halves[n, o, t, h % tile, s, v])

    counts = tuple(window.count for window in windows)
    attrs: dict[str, AttrValue] = {BLOCKED: WINOGRAD, TILE: tile}
    group_inputs, group_outputs = in_per_out
    if group_inputs:
        attrs[OWN_BLOCKS] = group_outputs
    shape = (x.shape[0], weight.shape[2], *counts, weight.shape[-1])
    return compute(shape, element, name, axis_names(2), attrs)


def _transformed_inputs(source: Tensor, matrices: Transforms, grid: tuple[int, int], name: str) -> Tensor:
    """Declare the transformed inputs (N, m + 2, m + 2, C / ci, tiles, ci), rows of tiles first.

    Args:
        source: Padded input (N, C / ci, H, W, ci).
        matrices: Matrices of the transforms.
        grid: Number of tiles down and across.
        name: Name of the convolution.
    """
    batch, blocks, _, _, ci = source.shape
    tile, extent = matrices.results.shape
    tiles, across = grid[0] * grid[1], grid[1]

    def row(*at: Expression) -> Expression:
        n, c, t, i, s, v = at
        top, left = t // across * tile, t % across * tile
        return _input_at(i, matrices, lambda r: source[n, c, top + r, left + s, v])

    rows = compute((batch, blocks, tiles, extent, extent, ci), row, f"{name}.rows", tuple("nctisv"))

    def moved(*at: Expression) -> Expression:
        n, i, j, c, t, v = at
        return _input_at(j, matrices, lambda s: rows[n, c, t, i, s, v])

    return compute((batch, extent, extent, blocks, tiles, ci), moved, f"{name}.input", tuple("nijctv"))


def _products(inputs: Tensor, weight: Tensor, in_per_out: tuple[int, int], name: str) -> Tensor:
    """Declare the products summed over channels: (N, m + 2, m + 2, M / lanes, tiles, lanes).

    Args:
        inputs: Transformed inputs.
        weight: Transformed weights.
        in_per_out: Blocks that results read; see `winograd_convolution`.
        name: Name of the convolution.
    """
    batch, extent, _, _, tiles, ci = inputs.shape
    block, channel = reduce_axis(weight.shape[3], "rb"), reduce_axis(ci, "rc")
    group_inputs, group_outputs = in_per_out

    def product(*at: Expression) -> Reduction:
        n, i, j, o, t, v = at
        first = o // group_outputs * group_inputs if group_inputs else 0
        value = inputs[n, i, j, block.expression + first, t, channel] * weight[i, j, o, block, channel, v]
        return functions.sum(value, (block, channel))

    shape = (batch, extent, extent, weight.shape[2], tiles, weight.shape[-1])
    return compute(shape, product, f"{name}.product", tuple("nijotv"))


def _half_results(products: Tensor, matrices: Transforms, name: str) -> Tensor:
    """Declare results that are transformed along rows only: (N, M / lanes, tiles, m, m + 2, lanes)."""
    batch, extent, _, blocks, tiles, lanes = products.shape
    tile = matrices.results.shape[0]

    def half(*at: Expression) -> Expression:
        n, o, t, y, s, v = at
        return _result_at(y, matrices, lambda r: products[n, r, s, o, t, v])

    return compute((batch, blocks, tiles, tile, extent, lanes), half, f"{name}.half", tuple("notysv"))


def _input_at(
    position: Expression, matrices: Transforms, value_at: Callable[[int], Expression]
) -> Expression:
    """Return an element of a transformed input: the input matrix times the values of a line.

    Args:
        position: Row of the matrix.
        matrices: Matrices of the transforms.
        value_at: Function from a position in the line to its value.
    """
    values = [value_at(at) for at in range(len(matrices.inputs))]
    return _chosen(position, [_input(row, values) for row in matrices.inputs])


def _result_at(
    position: Expression, matrices: Transforms, value_at: Callable[[int], Expression]
) -> Expression:
    """Return an element of a result: the result matrix times the products of a line; see `_input_at`."""
    values = [value_at(at) for at in range(matrices.results.shape[1])]
    return _chosen(position, [_result(row, values) for row in matrices.results])


def _chosen(position: Expression, choices: Sequence[Expression]) -> Expression:
    """Return one of several values by position; unrolling the loop over positions folds the choice."""
    *others, value = choices
    for index in reversed(range(len(others))):
        value = select(equal(position, index), others[index], value)
    return value


def _input(row: npt.NDArray[np.float64], values: Sequence[Expression]) -> Expression:
    """Return a row of the input matrix times values.

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
    total: Expression | None = None
    for factors, chosen in sums:
        if chosen:
            lead = float(factors[-1])
            inner = chosen[-1]
            for factor, value in zip(factors[:-1], chosen[:-1], strict=True):
                inner = _plus(inner, value, float(factor) / lead)
            total = _times(inner, lead) if total is None else _plus(total, inner, lead)
    assert total is not None, "no row is zero"
    return total


def _result(row: npt.NDArray[np.float64], values: Sequence[Expression]) -> Expression:
    """Return a row of the result matrix times values.

    All rows share the sum and the difference of the values of a point and of its negative.
    """
    total = None if row[0] == 0 else values[0]
    for position in range(1, len(row) - 1, 2):
        first, second = values[position : position + 2]
        pair = first + second if row[position] == row[position + 1] else first - second
        total = _times(pair, row[position]) if total is None else _plus(total, pair, row[position])
    assert total is not None, "there are points"
    return total + values[-1] if row[-1] else total


def _plus(total: Expression, value: Expression, factor: float) -> Expression:
    if factor == 1:
        return total + value
    return total - value if factor == -1 else total + value * float(factor)


def _times(value: Expression, factor: float) -> Expression:
    return value if factor == 1 else value * float(factor)
