"""Schedules of channelwise windows on blocked tensors: depthwise convolutions, and pools.

The vector is a block of channels, and several pixels of a row are computed at once. The taps of a row are
unrolled,
so that overlapping windows load an element once. There is no padded copy: loops are partitioned where windows
exceed the image, and taps outside it are left out.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of

_MOST_TAPS: Final = 5
"""Maximum number of taps of a row that are unrolled."""
_LONG_ROW: Final = 16
"""Number of pixels of a row from which a few at once are as fast as many, with less code."""
_FEW_PIXELS: Final = 4
_MOST_PIXELS: Final = 7


class ChannelwiseChoice(NamedTuple):
    """Choice for one channelwise operation.

    Attributes:
        rows: Number of rows of a tile.
        pixels: Number of pixels in each row of a tile.
        unrolled: Number of unrolled loops over taps, from the innermost one on.
        is_by_plane: Whether all rows of a block of channels are computed before the next one.
    """

    rows: int
    pixels: int
    unrolled: int
    is_by_plane: int


def channelwise_choice(chain: BlockedChain, task: ScheduleTask) -> ChannelwiseChoice:
    """Return the default choice."""
    op = chain.reduction
    taps = op.reduce_axes[-1].extent
    unrolled = taps if taps <= _MOST_TAPS else 1
    is_by_plane = op.shape[1] >= 2 * task.threads or task.threads == 1
    pixels = _pixels(op.shape[-2], unrolled, task.accumulators)
    return ChannelwiseChoice(1, pixels, int(unrolled > 1), int(is_by_plane))


def channelwise_state(
    chain: BlockedChain, task: ScheduleTask, choice: ChannelwiseChoice | None = None
) -> LoopState:
    """Return the state of a DAG around one depthwise convolution or pool of a blocked tensor.

    Args:
        chain: Chain around the operation.
        task: DAG and machine.
        choice: Choice to apply; the default choice if not given.
    """
    state = _with_pixels(chain, task, channelwise_choice(chain, task) if choice is None else choice)
    if chain.pad is not None:
        state = state.compute_inline(chain.pad)
    return chain.with_rest(state, task)


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
    tile, is_tall = [f"{w}.1"], choice.rows > 1
    if is_tall:
        state = state.split(target, rows[-1], [choice.rows])
        rows, tile = [*rows[:-1], f"{rows[-1]}.0"], [f"{rows[-1]}.1", *tile]
    chunks = [o, *rows] if choice.is_by_plane else [*rows, o]
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


def _pixels(columns: int, taps: int, accumulators: int) -> int:
    """Return how many pixels fit into registers, with their sums, their inputs, and a weight per tap."""
    few = _FEW_PIXELS if columns >= _LONG_ROW else _MOST_PIXELS
    most = max(1, min((accumulators - 2 * taps) // 2 + 1, columns, few))
    costs = {count: -(-columns // count) * 2 + columns % count for count in range(1, most + 1)}
    return min(costs, key=lambda count: (costs[count], count))
