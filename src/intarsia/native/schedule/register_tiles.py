"""How many neighbouring results are kept in vector registers at once."""

from __future__ import annotations

from typing import Final, NamedTuple

_MOST_ROWS: Final = 4
_MOST_BLOCKS: Final = 4
# Costs in products, by measurement on convolutions of 7 to 56 pixels in a row.
_STEP_COST: Final = 2.0
"""What a step of the reduction costs besides its products: counters and jumps."""
_PIXEL_COST: Final = 0.25
"""What a number of the input costs; most are loaded while products are computed."""
_WEIGHT_COST: Final = 2.0
"""What a vector of weights costs; they stream from a cache further away."""
_LEAST_SUMS: Final = 8
"""Fewer sums wait for each other: a product takes four cycles, and two begin in each."""
_TAIL_COST: Final = 1.08
"""A tail means more code, and more to compile."""


class PixelTile(NamedTuple):
    """A tile of results: so many rows of so many pixels of so many blocks of channels."""

    rows: int
    pixels: int
    blocks: int


def pixel_tile(rows: int, columns: int, blocks: int, accumulators: int, registers: int) -> PixelTile:
    """The tile of a convolution with the least cost for each result.

    A tile of p pixels by b blocks takes p + b operands for p * b products in each step of the reduction. What
    is left at the end of a row or column is a smaller tile with the same costs for each step. Several rows
    are taken together only where whole rows fit.

    Args:
        rows: Of the image.
        columns: Pixels in a row.
        blocks: Blocks of channels.
        accumulators: How many vector registers there are for results.
        registers: How many there are for results, and for a vector of weights of each block.
    """
    found = {
        PixelTile(height, pixels, count): _cost(rows, columns, PixelTile(height, pixels, count))
        for count in range(1, _MOST_BLOCKS + 1)
        if blocks % count == 0
        for pixels in range(1, max(1, min(columns, accumulators // count, registers // count - 1)) + 1)
        for height in range(1, (min(rows, _MOST_ROWS) if pixels == columns else 1) + 1)
        if height == 1 or height * pixels * count <= min(accumulators, registers - count)
    }
    return min(found, key=lambda tile: (found[tile], tile))


def _cost(rows: int, columns: int, tile: PixelTile) -> float:
    """For each result."""
    across, right = divmod(columns, tile.pixels)
    down, below = divmod(rows, tile.rows)
    widths = [(across, tile.pixels), (1, right)] if right else [(across, tile.pixels)]
    heights = [(down, tile.rows), (1, below)] if below else [(down, tile.rows)]
    cost = sum(
        many * often * _tile_cost(width * height, tile.blocks)
        for many, width in widths
        for often, height in heights
    )
    return cost / (rows * columns * tile.blocks) * (_TAIL_COST if right or below else 1)


def _tile_cost(pixels: int, blocks: int) -> float:
    return max(pixels * blocks, _LEAST_SUMS) + _PIXEL_COST * pixels + _WEIGHT_COST * blocks + _STEP_COST
