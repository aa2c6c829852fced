"""Register tiles of convolutions."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

_MOST_ROWS: Final = 4
_MOST_BLOCKS: Final = 4
# Costs in multiplications, measured on convolutions of 7 to 56 pixels per row.
_PIXEL_COST: Final = 1.0
"""Cost of loading an input element; loads and multiplications overlap, but not completely."""
_WEIGHT_COST: Final = 3.0
"""Cost of loading a vector of weights, which streams from a more distant cache."""
_LEAST_SUMS: Final = 8
"""Minimum number of independent sums: an FMA takes four cycles, and two start in each."""
_SHAPE_COST: Final = 0.05
"""Cost of each extra tile shape, which needs more code and compile time."""


class PixelTile(NamedTuple):
    """The size of a register tile of results: rows, pixels per row, and blocks of channels."""

    rows: int
    pixels: int
    blocks: int


def pixel_tile(
    rows: int, columns: int, blocks: int, accumulators: int, registers: int, group_blocks: int = 0
) -> PixelTile:
    """Return the register tile of a convolution with the least cost per result.

    A tile of p pixels by b blocks needs p + b operands for p * b products in each step of the reduction.
    Remainders of a row, a column or the blocks are smaller tiles. A tile has several rows only if whole rows
    fit.

    Args:
        rows: Number of rows of the image.
        columns: Number of pixels in a row.
        blocks: Number of blocks of channels.
        accumulators: Number of vector registers for results.
        registers: Number of vector registers for results plus a vector of weights for each block.
        group_blocks: Number of blocks of a group, which no tile crosses; 0 for a convolution of one group.
    """
    costs = {
        PixelTile(height, pixels, count): _cost(rows, columns, blocks, PixelTile(height, pixels, count))
        for count in range(1, min(_MOST_BLOCKS, group_blocks or blocks) + 1)
        if not group_blocks or group_blocks % count == 0
        for pixels in range(1, max(1, min(columns, accumulators // count, registers // count - 1)) + 1)
        for height in range(1, (min(rows, _MOST_ROWS) if pixels == columns else 1) + 1)
        if height == 1 or height * pixels * count <= min(accumulators, registers - count)
    }
    return min(costs, key=lambda tile: (costs[tile], tile))


def _cost(rows: int, columns: int, blocks: int, tile: PixelTile) -> float:
    """Return the cost per result."""
    pieces = [
        _pieces(rows, tile.rows),
        _pieces(columns, tile.pixels),
        _pieces(blocks, tile.blocks),
    ]
    cost = sum(
        down * across * deep * _tile_cost(height * width, count)
        for down, height in pieces[0]
        for across, width in pieces[1]
        for deep, count in pieces[2]
    )
    shapes = prod(len(sizes) for sizes in pieces)
    return cost / (rows * columns * blocks) * (1 + _SHAPE_COST * (shapes - 1))


def _pieces(extent: int, size: int) -> list[tuple[int, int]]:
    """Return pairs of the number and the size of pieces."""
    whole, rest = divmod(extent, size)
    return [(whole, size), (1, rest)] if rest else [(whole, size)]


def _tile_cost(pixels: int, blocks: int) -> float:
    return max(pixels * blocks, _LEAST_SUMS) + _PIXEL_COST * pixels + _WEIGHT_COST * blocks
