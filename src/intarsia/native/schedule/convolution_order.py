"""Order of the tiles of a convolution, and the loop that threads share."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from intarsia.native.schedule.register_tiles import PixelTile
from intarsia.native.te import ComputeOp
from intarsia.target.cache_sizes import CacheSizes

_KEPT_SHARE: Final = 4
"""Divisor of the second-level cache size that gives the memory kept while other data stream through."""
_COPY_SHARE: Final = 8
"""Divisor of the second-level cache size that gives the memory for the padded copy of a band."""
_CHUNKS: Final = 4
"""Number of chunks of work per thread, so that a late chunk delays the others only briefly."""
ENOUGH: Final = 0.95
"""Minimum utilisation of threads at which work counts as well balanced."""
_REST_COST: Final = 8
"""Factor by which a band must be larger to justify a remainder band."""
_LEAST_PIECE: Final = 2
"""Minimum number of blocks of input channels in a piece of sums, which loads and stores its tiles once."""
_UNCUT: Final = 2
"""Ratio of a tile's weights to the first-level cache up to which its sums are not cut."""


class ConvolutionOrder(NamedTuple):
    """The loops around the tiles.

    Attributes:
        is_by_blocks: All rows for some blocks of channels, before the next blocks; else all blocks for a band
            of rows, before the next band.
        band: Number of rows of tiles in a band.
        is_parallel: Whether the outermost of them is parallel.
    """

    is_by_blocks: bool
    band: int
    is_parallel: bool


def convolution_order(
    op: ComputeOp, tile: PixelTile, caches: CacheSizes, threads: int, is_padded: bool
) -> ConvolutionOrder:
    """Return the order that reads least from distant caches, and keeps all threads busy.

    By blocks, weights are read once, and the input again for each tile of blocks; by bands it is the reverse.
    Data that are read again must stay in a cache.

    Args:
        op: Reduction over blocked tensors.
        tile: Register tile.
        caches: Sizes of a core's caches.
        threads: Number of threads that share the work.
        is_padded: Whether the input is copied with its padding.
    """
    spatial = op.shape[2:-1]
    blocks = -(-op.shape[1] // tile.blocks)
    rows = max(1, -(-spatial[-2] // tile.rows)) if len(spatial) > 1 else 1
    band_bytes = caches.second // _COPY_SHARE if is_padded else 2 * caches.first
    band = min(rows, max(1, band_bytes // (_row_bytes(op) * tile.rows)))
    weights, kept = _weight_bytes(op), caches.second // _KEPT_SHARE
    by_blocks = _row_bytes(op) * prod(spatial[:-1]) <= max(weights, kept)
    band = shared_band(rows, band, threads)
    if threads == 1 or rows == blocks == 1:
        return ConvolutionOrder(by_blocks, 1 if by_blocks else band, False)
    if blocks < threads * _CHUNKS and weights <= 2 * kept:
        by_blocks = False
    share_of_blocks, share_of_bands = share_of_time(blocks, threads), share_of_time(-(-rows // band), threads)
    if by_blocks and share_of_blocks < min(ENOUGH, share_of_bands):
        by_blocks = False
    elif not by_blocks and share_of_bands < min(ENOUGH, share_of_blocks):
        by_blocks = True
    return ConvolutionOrder(by_blocks, 1 if by_blocks else band, True)


def piece_of_sums(op: ComputeOp, tile: PixelTile, caches: CacheSizes) -> int:
    """Return the number of blocks of input channels in a piece of sums; 0 if sums are not cut.

    Each tile reads all weights of its blocks. Where they exceed the first-level cache, all tiles add up one
    piece of the channels before the next, whose weights stay in the cache from tile to tile.

    Args:
        op: Reduction over blocked tensors.
        tile: Register tile.
        caches: Sizes of a core's caches.
    """
    size, (channels, *rest) = op.dtypes[0].numpy.itemsize, (axis.extent for axis in op.reduce_axes)
    weights = tile.blocks * op.shape[-1] * prod(rest) * size
    if weights * channels <= _UNCUT * caches.first:
        return 0
    piece = max(_LEAST_PIECE, caches.first // 4 // weights)
    return piece if channels >= 2 * piece else 0


def order_of_pieces(
    op: ComputeOp, tile: PixelTile, caches: CacheSizes, threads: int, whole: ConvolutionOrder
) -> ConvolutionOrder:
    """Return the order of a convolution whose sums are cut: what waits for the next piece stays in a cache.

    Args:
        op: Reduction over blocked tensors.
        tile: Register tile.
        caches: Sizes of a core's caches.
        threads: Number of threads that share the work.
        whole: Order of the convolution if its sums were not cut.
    """
    spatial, size, most = op.shape[2:-1], op.dtypes[0].numpy.itemsize, caches.second // 2
    of_blocks = tile.blocks * op.shape[-1] * prod(spatial) * size
    rows = max(1, -(-spatial[-2] // tile.rows)) if len(spatial) > 1 else 1
    is_kept = op.shape[1] * op.shape[-1] * prod(spatial) * size <= most
    # Weights that are more than the input are read in the order in which they lie, block by block.
    if threads == 1 and is_kept and prod(op.inputs[0].shape[1:]) * size >= _weight_bytes(op):
        return ConvolutionOrder(False, rows, False)  # a piece of the input is read once, and padded then
    if len(spatial) == 1 or (of_blocks <= most and (threads == 1 or whole.is_by_blocks)):
        return ConvolutionOrder(True, 1, whole.is_parallel)
    of_row = op.shape[1] * op.shape[-1] * spatial[-1] * size * tile.rows
    band = shared_band(rows, max(1, min(rows, most // of_row)), threads)
    return ConvolutionOrder(False, band, whole.is_parallel)


def shared_band(rows: int, band: int, threads: int) -> int:
    """Return a band of at most `band` rows that balances the threads.

    A shorter last band needs separate code, so bands should divide the rows.

    Args:
        rows: Number of rows of tiles.
        band: Largest number of rows of tiles in a band.
        threads: Number of threads that share the bands.
    """
    most = band if threads == 1 else max(1, min(band, rows // (threads * _CHUNKS)))

    def worth(size: int) -> tuple[bool, int, int]:
        is_shared = share_of_time(-(-rows // size), threads) >= ENOUGH
        return is_shared, size if rows % size == 0 else size // _REST_COST, size

    return max(range(1, most + 1), key=worth)


def share_of_time(count: int, threads: int) -> float:
    """Return the utilisation of threads, from 0 to 1, when they share `count` equal chunks of work."""
    return count / (-(-count // threads) * threads)


def _row_bytes(op: ComputeOp) -> int:
    """Estimate the new input in bytes that a row of results reads, beyond that of the previous row."""
    rank = len(op.shape) - 3
    taps = [axis.extent for axis in op.reduce_axes[1 : 1 + rank]]
    channels = prod(axis.extent for axis in op.reduce_axes) // prod(taps)
    result_shape, input_shape = op.shape[2:-1], op.inputs[0].shape[2 : 2 + rank]
    pixels = result_shape[-1] if taps[-1] == 1 else input_shape[-1]
    rows = input_shape[-2] / max(1, result_shape[-2]) if rank > 1 and taps[-2] > 1 else 1
    return max(1, int(channels * pixels * rows) * op.dtypes[0].numpy.itemsize)


def _weight_bytes(op: ComputeOp) -> int:
    """Return the size of the weights in bytes: one for each channel of the result and reduction step."""
    weights = prod((op.shape[1], op.shape[-1], *(axis.extent for axis in op.reduce_axes)))
    return weights * op.dtypes[0].numpy.itemsize
