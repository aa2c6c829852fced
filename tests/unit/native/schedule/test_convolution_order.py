"""The order of a convolution's tiles: what is read again fits a cache, and threads share alike."""

from __future__ import annotations

import pytest

from intarsia.native import te
from intarsia.native.schedule.convolution_order import ConvolutionOrder, convolution_order
from intarsia.native.schedule.register_tiles import PixelTile, pixel_tile
from intarsia.native.te import ComputeOp
from intarsia.native.te.operators.blocked_convolution import blocked_convolution
from intarsia.native.te.operators.windows import Window
from intarsia.target.cache_sizes import CacheSizes

CACHES = CacheSizes(48 * 1024, 2 * 1024 * 1024, 32 * 1024 * 1024)


def reduction(channels: int, made: int, size: int, taps: int = 1, stride: int = 1) -> ComputeOp:
    """A convolution of an image that is padded already, in blocks of 16."""
    window = Window(size, (size - taps) // stride + 1, taps, stride, 1, 0, 0)
    x = te.placeholder((1, channels // 16, size, size, 16), name="x")
    w = te.placeholder((made // 16, channels // 16, taps, taps, 16, 16), name="w")
    op = blocked_convolution(x, w, (window, window), "conv").op
    assert isinstance(op, ComputeOp)
    return op


def order_of(op: ComputeOp, threads: int, is_padded: bool = False) -> tuple[ConvolutionOrder, PixelTile]:
    tile = pixel_tile(op.shape[2], op.shape[3], op.shape[1], 29, 31)
    return convolution_order(op, tile, CACHES, threads, is_padded), tile


@pytest.mark.parametrize(
    ("op", "is_by_blocks"),
    [
        (reduction(64, 256, 28), True),  # both fit: weights are the ones that stream
        (reduction(256, 64, 56), False),  # only the weights fit
        (reduction(512, 512, 9, taps=3), True),  # only the input fits
        (reduction(256, 512, 56, stride=2), False),
    ],
)
def test_what_is_read_again_fits_a_cache(op: ComputeOp, is_by_blocks: bool) -> None:
    order, _ = order_of(op, 1)
    assert (order.is_by_blocks, order.is_parallel) == (is_by_blocks, False)


@pytest.mark.parametrize("threads", [2, 3, 4, 8])
@pytest.mark.parametrize(
    "op",
    [reduction(64, 64, 58, 3), reduction(16, 64, 57, 3), reduction(64, 48, 13), reduction(512, 512, 9, 3)],
)
def test_threads_share_alike(op: ComputeOp, threads: int) -> None:
    order, tile = order_of(op, threads)
    rows = -(-op.shape[2] // tile.rows)
    count = -(-op.shape[1] // tile.blocks) if order.is_by_blocks else -(-rows // order.band)
    assert order.is_parallel
    assert count / (-(-count // threads) * threads) >= 0.75 or count < 2 * threads


def test_bands_that_are_copied_have_more_rows() -> None:
    op = reduction(64, 64, 114, taps=3)
    assert order_of(op, 1, is_padded=True)[0].band > order_of(op, 1)[0].band >= 1
