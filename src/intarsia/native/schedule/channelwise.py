"""Schedules of channelwise windows on blocked tensors: depthwise convolutions, and pools.

The vector is a block of channels, and several pixels of a row are computed at once. The taps of a row are
unrolled,
so that overlapping windows load an element once. There is no padded copy: loops are partitioned where windows
exceed the image, and taps outside it are left out.
"""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from intarsia.ir.prim_func import Intrinsic
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.convolution_order import ENOUGH, share_of_time, shared_band
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp
from intarsia.native.te.operators.blocked_layout import SHARES_ROWS

_FEW_TAPS: Final = 5
"""Number of taps of a row up to which a few pixels at once are as fast as many, with less code."""
_LEAST_PIXELS: Final = 3
"""Minimum number of pixels for which that many taps are unrolled: with 2, which 5 taps leave of 16 registers,
windows take 1.1 times as long as taps that stay a loop."""
_IMAGE_RANK: Final = 5
"""Number of dimensions of a blocked tensor with rows: batch, blocks, rows, columns, lanes."""
_MOST_TAPS_OF_WORDS: Final = 9
"""The same for words of rows, whose columns take less room in registers than floats of single taps."""
_ROWS_OF_WORDS: Final = 2
_PIXELS_OF_WORDS: Final = 8
"""Pixels of a row whose windows share words: of 7 x 7 taps, 4 pixels reach 283 GOP/s, 8 reach 338 (Zen 5)."""
_KEPT_SHARE: Final = 2
"""Divisor of the second-level cache size that gives the memory for a block of channels."""
_LONG_ROW: Final = 16
"""Number of pixels of a row from which the pixels at once need not divide them."""
_FEW_PIXELS: Final = 4
_MOST_PIXELS: Final = 7


class ChannelwiseChoice(NamedTuple):
    """Choice for one channelwise operation.

    Attributes:
        rows: Number of rows of a tile.
        pixels: Number of pixels in each row of a tile.
        unrolled: Number of unrolled loops over taps, from the innermost one on.
        is_by_plane: Whether all rows of a block of channels are computed before the next one; else those of
            a band of rows are.
        band: Number of rows of tiles in a band.
    """

    rows: int
    pixels: int
    unrolled: int
    is_by_plane: int
    band: int = 1


def channelwise_choice(chain: BlockedChain, task: ScheduleTask) -> ChannelwiseChoice:
    """Return the default choice."""
    op = chain.reduction
    taps = op.reduce_axes[-1].extent
    if _sums_words(op) and taps <= _MOST_TAPS_OF_WORDS:
        pixels = _pixels_of_words(op.shape[-2], task.accumulators)
        rows = min(_ROWS_OF_WORDS, op.shape[-3], max(1, task.accumulators // pixels))
        return ChannelwiseChoice(rows, pixels, 1, *_order(chain, task, rows))
    # Other sums hide the latency of a multiply-add, as windows of many taps have few tiles under way.
    few = _FEW_PIXELS if taps <= _FEW_TAPS else max(_FEW_PIXELS, task.costs.sums)
    least = min(_LEAST_PIXELS if taps <= _FEW_TAPS else few, op.shape[-2])
    is_unrolled = _most_pixels(taps, task.accumulators) >= least
    if not is_unrolled:
        few = max(_FEW_PIXELS, task.costs.sums)
    pixels = _pixels(op.shape[-2], taps if is_unrolled else 1, task.accumulators, few)
    return ChannelwiseChoice(1, pixels, int(is_unrolled and taps > 1), *_order(chain, task, 1))


def _order(chain: BlockedChain, task: ScheduleTask, rows: int) -> tuple[int, int]:
    """Return whether threads share blocks of channels, and the number of rows of tiles in a band.

    Threads share blocks of channels, which is fastest alone. Between convolutions whose rows they share, they
    share rows: a core has written most of what it reads then. Other stages with loops share blocks.

    Args:
        chain: Chain around the operation.
        task: DAG and machine.
        rows: Number of rows of a tile.
    """
    op, threads = chain.reduction, task.threads
    if len(op.shape) < _IMAGE_RANK or threads == 1:
        return 1, 1
    tiles = -(-op.shape[-3] // rows)
    band = shared_band(tiles, tiles, threads)
    is_balanced = share_of_time(-(-tiles // band), threads) >= min(
        ENOUGH, share_of_time(op.shape[1], threads)
    )
    follows = SHARES_ROWS in op.attrs and is_balanced and not chain.has_rest
    return (0, band) if op.shape[1] < 2 * threads or follows else (1, 1)


def channelwise_state(
    chain: BlockedChain, task: ScheduleTask, choice: ChannelwiseChoice | None = None
) -> LoopState:
    """Return the state of a DAG around one depthwise convolution or pool of a blocked tensor.

    Args:
        chain: Chain around the operation.
        task: DAG and machine.
        choice: Choice to apply; the default choice if not given.
    """
    choice = channelwise_choice(chain, task) if choice is None else choice
    state = _with_pixels(chain, task, choice)
    if chain.pad is not None:
        state = _with_source(state, chain, chain.pad, task, choice)
    return chain.with_rest(state, task)


def _with_source(
    state: LoopState, chain: BlockedChain, name: str, task: ScheduleTask, choice: ChannelwiseChoice
) -> LoopState:
    """Widen narrow numbers once for each block of channels that stays in the cache; inline other padding."""
    op = state[name].op
    assert isinstance(op, ComputeOp), "padding is computed"
    narrow = max(tensor.dtype.numpy.itemsize for tensor in op.inputs)
    itemsize = op.dtypes[0].numpy.itemsize
    plane = prod(op.shape[2:]) * itemsize
    if narrow >= itemsize or not choice.is_by_plane or plane * _KEPT_SHARE > task.isa.caches.second:
        return state.compute_inline(name)
    block = chain.state[chain.target].iters[1].name
    state = state.compute_at(name, chain.target, block)
    return state.vectorize(name, state[name].iters[-1].name)


def global_pool_state(chain: BlockedChain, task: ScheduleTask) -> LoopState:
    """Return the state of a DAG around one pool over all pixels of a blocked tensor."""
    state, target, anchor, op = chain.state, chain.target, chain.anchor, chain.reduction
    n, o, *spatial, v = [loop.name for loop in state[target].iters]
    # As many sums as of multiply-adds hide the latency of additions and maxima, which take no longer.
    sums = task.costs.sums
    side_by_side = next(count for count in range(sums, 0, -1) if op.shape[1] % count == 0)
    state = state.split(target, o, [side_by_side])
    state = state.reorder(target, [n, f"{o}.0", *spatial, f"{o}.1", v])
    if task.is_parallel(work_of([op])):
        state = state.parallel(target, f"{o}.0")
    state = state.unroll(target, f"{o}.1").vectorize(target, v).compute_at(anchor, target, f"{o}.0")
    axes = [loop.name for loop in state[anchor].iters]
    outside, taps = axes[: len(op.axes)], axes[len(op.axes) :]
    order = [outside[0], *outside[2:-1], *taps, outside[1], outside[-1]]
    state = state.reorder(anchor, order).unroll(anchor, outside[1]).vectorize(anchor, outside[-1])
    return chain.with_rest(state, task)


def _with_pixels(chain: BlockedChain, task: ScheduleTask, choice: ChannelwiseChoice) -> LoopState:
    state, target, anchor, op = chain.state, chain.target, chain.anchor, chain.reduction
    n, o, *rows, w, v = [loop.name for loop in state[target].iters]
    state = state.split(target, w, [choice.pixels])
    tile, is_tall, chunks = [f"{w}.1"], choice.rows > 1, [o, *rows]
    if rows and not choice.is_by_plane:
        *outer, row = rows
        state = state.split(target, row, [choice.band, choice.rows])
        chunks, tile = [*outer, f"{row}.0", o, f"{row}.1"], [f"{row}.2", *tile]
    elif is_tall:
        *outer, row = rows
        state = state.split(target, row, [choice.rows])
        chunks, tile = [o, *outer, f"{row}.0"], [f"{row}.1", *tile]
    state = state.reorder(target, [n, *chunks, f"{w}.0", *tile, v])
    if task.is_parallel(work_of([op])):
        state = state.parallel(target, chunks[0])
    for name in tile:
        state = state.unroll(target, name)
    state = state.vectorize(target, v).compute_at(anchor, target, f"{w}.0")
    axes = [loop.name for loop in state[anchor].iters]
    outside, taps = axes[: len(op.axes)], axes[len(op.axes) :]
    inner = outside[-3:] if is_tall else outside[-2:]
    state = state.reorder(anchor, [*outside[: -len(inner)], *taps, *inner])
    for name in [*taps[len(taps) - choice.unrolled :], *inner[:-1]]:
        state = state.unroll(anchor, name)
    return state.vectorize(anchor, inner[-1])


def _sums_words(op: ComputeOp) -> bool:
    """Return whether an operation sums dot products of words."""
    return isinstance(op.bodies[0], Intrinsic) and op.bodies[0].name == "dot_u8s8"


def _pixels_of_words(columns: int, accumulators: int) -> int:
    """Return the number of pixels of a row with the fewest tiles, and among these the fewest left over."""
    most = max(1, min(_PIXELS_OF_WORDS, accumulators))
    costs = {count: (-(-columns // count), columns % count) for count in range(1, most + 1)}
    return min(costs, key=lambda count: (costs[count], count))


def _most_pixels(taps: int, accumulators: int) -> int:
    """Return how many pixels fit into registers, with their sums, their inputs, and a weight per tap."""
    return (accumulators - 2 * taps) // 2 + 1


def _pixels(columns: int, taps: int, accumulators: int, few: int) -> int:
    """Return the number of pixels at once that fit into registers: of long rows, at most a few."""
    few = few if columns >= _LONG_ROW else max(few, _MOST_PIXELS)
    most = max(1, min(_most_pixels(taps, accumulators), columns, few))
    costs = {count: -(-columns // count) * 2 + columns % count for count in range(1, most + 1)}
    return min(costs, key=lambda count: (costs[count], count))
