"""Register tiles of convolutions."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts

_MOST_ROWS: Final = 4
_MOST_BLOCKS: Final = 4
# Costs in multiplications, measured on convolutions of 7 to 56 pixels per row (Zen 3, AVX2).
_PIXEL_COST: Final = 1.0
"""Cost of loading an input element; loads and multiplications overlap, but not completely."""
_WEIGHT_COST: Final = 3.0
"""Cost of loading a vector of weights, which streams from a more distant cache."""
_SHAPE_COST: Final = 0.05
"""Cost of each extra tile shape, which needs more code and compile time."""


class PixelTile(NamedTuple):
    """The size of a register tile of results: rows, pixels per row, and blocks of channels."""

    rows: int
    pixels: int
    blocks: int


def pixel_tile(
    rows: int,
    columns: int,
    blocks: int,
    accumulators: int,
    registers: int,
    group_blocks: int = 0,
    costs: RelativeCosts = REFERENCE_COSTS,
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
        costs: Costs of the machine.
    """
    tile_costs = {
        PixelTile(height, pixels, count): _cost(
            rows, columns, blocks, PixelTile(height, pixels, count), costs
        )
        for count in range(1, min(_MOST_BLOCKS, group_blocks or blocks) + 1)
        if not group_blocks or group_blocks % count == 0
        for pixels in range(1, max(1, min(columns, accumulators // count, registers // count - 1)) + 1)
        for height in range(1, (min(rows, _MOST_ROWS) if pixels == columns else 1) + 1)
        if height == 1 or height * pixels * count <= min(accumulators, registers - count)
    }
    return min(tile_costs, key=lambda tile: (tile_costs[tile], tile))


def _cost(rows: int, columns: int, blocks: int, tile: PixelTile, costs: RelativeCosts) -> float:
    """Return the cost per result."""
    pieces = [
        _pieces(rows, tile.rows),
        _pieces(columns, tile.pixels),
        _pieces(blocks, tile.blocks),
    ]
    cost = sum(
        down * across * deep * _tile_cost(height * width, count, costs)
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


def _tile_cost(pixels: int, blocks: int, costs: RelativeCosts) -> float:
    loads = _PIXEL_COST * costs.first * pixels + _WEIGHT_COST * costs.second * blocks
    return max(pixels * blocks, costs.sums) + loads
