"""Schedule of convolutions of blocked tensors: register tiles of pixels by blocks of channels.

Each step of the reduction loads a vector of weights for each block and one input element for each pixel. The
reduction of windows with several taps is not unrolled: neighbouring taps read the same elements, and a
compiler that
sees that keeps more of them than there are registers. Pixels are outside of blocks in a tile, so that each
element
is loaded where it is used.

Around the tiles, either all rows of some blocks are computed before the next blocks, so that weights are read
once,
or all blocks of a band of rows before the next band, so that the input is read once: see `ConvolutionOrder`.
If the weights of a tile exceed the first-level cache, its sums are cut into pieces of the input's channels.
A padded
input is copied first: as a whole, or band by band by the thread that reads it.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Final, NamedTuple

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.convolution_order import (
    ENOUGH,
    convolution_order,
    order_of_pieces,
    piece_of_sums,
    share_of_time,
)
from intarsia.native.schedule.register_tiles import PixelTile, pixel_tile
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp
from intarsia.native.te.operators.blocked_layout import OWN_BLOCKS

_MOST_COPIED: Final = 1.67
"""Maximum number of times that bands copy a row of the input: 3 rows of windows of 3 rows copy 5 for 3."""
_STEPS: Final = 8
"""Maximum unroll factor of reductions over channels alone (K-unroll), by measurement."""
_MOST_PRODUCTS: Final = 112
"""Maximum number of products in the body of such a loop: more run no faster, and are compiled longer."""
_IMAGE_RANK: Final = 5
"""Rank of a blocked tensor with rows and columns."""


class ConvolutionChoice(NamedTuple):
    """Choice for one convolution.

    Attributes:
        rows: Number of rows of a tile.
        pixels: Number of pixels in each row of a tile.
        blocks: Number of blocks of channels of a tile.
        is_by_blocks: Order of tiles, as in `ConvolutionOrder`.
        band: Number of rows of tiles in a band.
        pads_bands: Whether the input is padded band by band.
        steps: Unroll factor of the reduction (K-unroll).
        piece: Number of blocks of input channels that are added up for all tiles before the next ones; 0 for
            all of them.
    """

    rows: int
    pixels: int
    blocks: int
    is_by_blocks: int
    band: int
    pads_bands: int
    steps: int = 1
    piece: int = 0


def convolution_choice(chain: BlockedChain, task: ScheduleTask) -> ConvolutionChoice:
    """Return the default choice: the tile of least cost, and the order that suits the caches."""
    op = chain.reduction
    spatial = op.shape[2:-1]
    rows = spatial[-2] if len(spatial) > 1 else 1
    registers = task.isa.vector_registers - 1 - task.product_registers(op)
    sizes = rows, spatial[-1], op.shape[1], task.accumulators_of(op), registers, group_blocks(op)
    tile = pixel_tile(*sizes, task.costs)
    threads = task.threads if task.is_parallel(work_of([op])) else 1
    order = convolution_order(op, tile, task.isa.caches, threads, chain.pad is not None)
    piece = piece_of_sums(op, tile, task.isa.caches)
    if piece:
        order = order_of_pieces(op, tile, task.isa.caches, threads, order)
    is_whole = order.band * tile.rows >= rows
    may_pad = may_pad_bands(chain) or (piece > 0 and _may_pad_pieces(chain))
    is_short = is_whole or _copied_share(chain, order.band * tile.rows) <= _MOST_COPIED
    pads_bands = may_pad and not order.is_by_blocks and is_short
    steps = _steps(op, tile, task)
    return ConvolutionChoice(*tile, int(order.is_by_blocks), order.band, int(pads_bands), steps, piece)


def group_blocks(op: ComputeOp) -> int:
    """Return the number of blocks of results of a group, which no tile crosses; 0 for one group.

    A tile that crosses groups would read other inputs for each of its blocks.
    """
    blocks = op.attrs.get(OWN_BLOCKS, 0)
    assert isinstance(blocks, int), "the declaration says so"
    return blocks


def _steps(op: ComputeOp, tile: PixelTile, task: ScheduleTask) -> int:
    """Return the unroll factor of a reduction; 1 where neighbouring taps would share inputs.

    Blocks of bytes in 16 bits have few words, for which a loop costs much: unrolled, windows of 3 x 3 on 512
    channels take 0.91 of the time (AVX2 on Zen 4).
    """
    _, *taps, channels = (axis.extent for axis in op.reduce_axes)
    steps = _STEPS
    while steps > 1 and steps * prod(tile) > _MOST_PRODUCTS:
        steps //= 2
    is_unrolled = prod(taps) == 1 or task.product_registers(op) > 0
    return gcd(channels, steps) if is_unrolled else 1


def _copied_share(chain: BlockedChain, rows: int) -> float:
    """Return how many rows of padding a band of some rows of results copies, over those between bands.

    Strides as long as windows leave no row that two bands read.
    """
    op = chain.reduction
    if chain.pad is None or len(op.shape) < _IMAGE_RANK or op.shape[-3] == 1:
        return 1.0
    reach, count = chain.state[chain.pad].op.buffers[0].shape[-3], op.shape[-3]
    taps = op.reduce_axes[-3].extent
    stride = max(1, (reach - taps) // (count - 1))
    return ((rows - 1) * stride + taps) / (rows * stride)


def may_pad_bands(chain: BlockedChain) -> bool:
    """Return whether there is padding that can be copied band by band."""
    return chain.pad is not None and len(chain.reduction.shape) == _IMAGE_RANK


def _may_pad_pieces(chain: BlockedChain) -> bool:
    """Return whether the padding of one dimension can be copied piece by piece."""
    is_row = len(chain.reduction.shape) < _IMAGE_RANK
    return chain.pad is not None and is_row and not group_blocks(chain.reduction)


def convolution_state(
    chain: BlockedChain, task: ScheduleTask, choice: ConvolutionChoice | None = None
) -> LoopState:
    """Return the state of a DAG around one convolution of a blocked tensor.

    Args:
        chain: Chain around the convolution.
        task: DAG and machine.
        choice: Choice to apply; the default choice if not given.
    """
    choice = choice or convolution_choice(chain, task)
    state = _with_tile(chain, task, choice)
    if chain.pad is not None:
        state = (
            _with_padded_bands(state, chain, choice.piece)
            if choice.pads_bands
            else with_padding(state, chain.pad, task)
        )
    return chain.with_rest(state, task)


def _with_tile(chain: BlockedChain, task: ScheduleTask, tile: ConvolutionChoice) -> LoopState:
    """Tile the loops.

    Rows and blocks are not fused, which would compute a quotient for each index per step.
    """
    state, target = chain.state, chain.target
    n, o, *rows, w, v = [loop.name for loop in state[target].iters]
    state = state.split(target, o, [tile.blocks]).split(target, w, [tile.pixels])
    unrolled = [f"{o}.1", f"{w}.1"]
    chunks = [f"{o}.0"]
    if rows:
        *outer, row = rows
        state = state.split(target, row, [tile.band, tile.rows])
        unrolled = [f"{row}.2", *unrolled]
        chunks = [*outer, f"{row}.0", *chunks, f"{row}.1"]
    if tile.is_by_blocks:
        chunks = [f"{o}.0", *(chunk for chunk in chunks if chunk != f"{o}.0")]
    state = state.reorder(target, [n, *chunks, f"{w}.0", *unrolled, v])
    if task.is_parallel(work_of([chain.reduction])) and _is_shared(chain.reduction, tile):
        state = state.parallel(target, chunks[0])
    for name in unrolled:
        state = state.unroll(target, name)
    state = state.vectorize(target, v)
    if tile.piece:
        is_shared = task.is_parallel(work_of([chain.reduction]))
        around = f"{rows[-1]}.0" if rows else f"{o}.0" if is_shared else n
        around = f"{o}.0" if tile.is_by_blocks else around
        state = state.compute_at(chain.anchor, target, around)
        return _with_pieces(state, chain.anchor, chain.reduction, tile)
    state = state.compute_at(chain.anchor, target, f"{w}.0")
    return _with_reduction_outside(state, chain.anchor, chain.reduction, tile.steps)


def _with_pieces(state: LoopState, anchor: str, op: ComputeOp, tile: ConvolutionChoice) -> LoopState:
    """Order the loops of sums in pieces: pieces, tiles, the reduction of a piece, the elements of a tile."""
    axes = [loop.name for loop in state[anchor].iters]
    n, o, *rows, w, lane = axes[: len(op.axes)]
    blocks, *reduced = axes[len(op.axes) :]
    state = state.split(anchor, blocks, [tile.piece])
    state = state.split(anchor, o, [tile.blocks]).split(anchor, w, [tile.pixels])
    tiles, inner = [f"{o}.0"], [f"{w}.1", f"{o}.1"]
    if rows:
        *outer, row = rows
        state = state.split(anchor, row, [tile.rows])
        tiles, inner = [*tiles, *outer, f"{row}.0"], [f"{row}.1", *inner]
    if tile.steps > 1:
        *reduced, last = reduced
        state = state.split(anchor, last, [tile.steps])
        reduced, inner = [*reduced, f"{last}.0"], [f"{last}.1", *inner]
    order = [n, f"{blocks}.0", *tiles, f"{w}.0", f"{blocks}.1", *reduced, *inner, lane]
    state = state.reorder(anchor, order)
    for name in inner:
        state = state.unroll(anchor, name)
    return state.vectorize(anchor, lane)


def _is_shared(op: ComputeOp, tile: ConvolutionChoice) -> bool:
    """Return whether there is more than one row of tiles, or tile of blocks."""
    rows = op.shape[-3] if len(op.shape) >= _IMAGE_RANK else 1
    return rows > tile.rows or op.shape[1] > tile.blocks


def _with_reduction_outside(state: LoopState, anchor: str, op: ComputeOp, steps: int) -> LoopState:
    """Put the reduction loops outside the register tile, in which the blocks of a pixel are innermost."""
    axes = [loop.name for loop in state[anchor].iters]
    n, block, *rest, lane = axes[: len(op.axes)]
    tile, reduced = [*rest, block], axes[len(op.axes) :]
    if steps > 1:
        *outer, last = reduced
        state = state.split(anchor, last, [steps])
        reduced, tile = [*outer, f"{last}.0"], [f"{last}.1", *tile]
    state = state.reorder(anchor, [n, *reduced, *tile, lane])
    for name in tile:
        state = state.unroll(anchor, name)
    return state.vectorize(anchor, lane)


def _with_padded_bands(state: LoopState, chain: BlockedChain, piece: int) -> LoopState:
    """Compute the padded copy of a band's input in the loop over bands, or over pieces of sums of a band."""
    assert chain.pad is not None, "the caller has looked"
    lane = state[chain.pad].iters[-1].name
    if piece and not group_blocks(chain.reduction):
        blocks = chain.state[chain.anchor].iters[len(chain.reduction.axes)].name
        return state.compute_at(chain.pad, chain.anchor, f"{blocks}.0").vectorize(chain.pad, lane)
    row = chain.state[chain.target].iters[2].name
    return state.compute_at(chain.pad, chain.target, f"{row}.0").vectorize(chain.pad, lane)


def with_padding(state: LoopState, pad: str, task: ScheduleTask) -> LoopState:
    """Schedule a padded copy that is computed before all else; parallel over rows if blocks are few."""
    loops = [loop.name for loop in state[pad].iters]
    if task.is_parallel(work_of([state[pad].op])):
        batch, block, row, *rest = loops
        blocks = state[pad].iters[1].extent or 1
        if rest and share_of_time(blocks, task.threads) < ENOUGH:
            state = state.reorder(pad, [batch, row, block, *rest])
        state = state.parallel(pad, 1)
    return state.vectorize(pad, loops[-1])
