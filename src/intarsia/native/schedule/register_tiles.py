"""How many neighbouring results are kept in vector registers at once."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

_MOST_ROWS: Final = 4
_MOST_BLOCKS: Final = 4
# Costs in products, by measurement on convolutions of 7 to 56 pixels in a row.
_PIXEL_COST: Final = 1.0
"""What a number of the input costs: a product can begin for each that is loaded, but not quite."""
_WEIGHT_COST: Final = 3.0
"""What a vector of weights costs; they stream from a cache further away."""
_LEAST_SUMS: Final = 8
"""Fewer sums wait for each other: a product takes four cycles, and two begin in each."""
_SHAPE_COST: Final = 0.05
"""Each other shape of a tile means more code, and more to compile."""


class PixelTile(NamedTuple):
    """A tile of results: so many rows of so many pixels of so many blocks of channels."""

    rows: int
    pixels: int
    blocks: int


def pixel_tile(rows: int, columns: int, blocks: int, accumulators: int, registers: int) -> PixelTile:
    """The tile of a convolution with the least cost for each result.

    A tile of p pixels by b blocks takes p + b operands for p * b products in each step of the reduction. What
    is left at the end of a row, a column or the blocks is a smaller tile. Several rows are taken together
    only where whole rows fit.

    Args:
        rows: Of the image.
        columns: Pixels in a row.
        blocks: Blocks of channels.
        accumulators: How many vector registers there are for results.
        registers: How many there are for results, and for a vector of weights of each block.
    """
    found = {
        PixelTile(height, pixels, count): _cost(rows, columns, blocks, PixelTile(height, pixels, count))
        for count in range(1, min(_MOST_BLOCKS, blocks) + 1)
        for pixels in range(1, max(1, min(columns, accumulators // count, registers // count - 1)) + 1)
        for height in range(1, (min(rows, _MOST_ROWS) if pixels == columns else 1) + 1)
        if height == 1 or height * pixels * count <= min(accumulators, registers - count)
    }
    return min(found, key=lambda tile: (found[tile], tile))


def _cost(rows: int, columns: int, blocks: int, tile: PixelTile) -> float:
    """For each result."""
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
    shapes = prod(len(each) for each in pieces)
    return cost / (rows * columns * blocks) * (1 + _SHAPE_COST * (shapes - 1))


def _pieces(extent: int, size: int) -> list[tuple[int, int]]:
    """How many pieces there are of which size."""
    whole, rest = divmod(extent, size)
    return [(whole, size), (1, rest)] if rest else [(whole, size)]


def _tile_cost(pixels: int, blocks: int) -> float:
    return max(pixels * blocks, _LEAST_SUMS) + _PIXEL_COST * pixels + _WEIGHT_COST * blocks
