"""Windows over each channel of a blocked tensor on its own: depthwise convolutions, and pools.

The vector is a block of channels, and some pixels of a row are computed at once. The taps of a row are
unrolled, so that an element which several windows hold is loaded once. There is no padded copy: the loops are
cut where windows reach beyond the image, and taps that are no elements are left out there.
"""

from __future__ import annotations

from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp

_MOST_TAPS: Final = 5
"""Taps of a row that are unrolled."""
_LONG_ROW: Final = 16
"""Pixels of a row from which on a few of them at once are as fast as many; it is less code."""
_FEW_PIXELS: Final = 4
_MOST_PIXELS: Final = 7
_SUMS: Final = 8
"""Sums over all pixels that are computed side by side, so that one need not wait for the last."""


def channelwise_state(chain: BlockedChain, task: ScheduleTask) -> LoopState:
    """The state of a DAG around one depthwise convolution or pool of a blocked tensor."""
    state = _with_pixels(chain, task, chain.reduction)
    if chain.pad is not None:
        state = state.compute_inline(chain.pad)
    return chain.with_rest(state, task)


def global_pool_state(chain: BlockedChain, task: ScheduleTask) -> LoopState:
    """The state of a DAG around one pool over all pixels of a blocked tensor."""
    state, target, anchor, op = chain.state, chain.target, chain.anchor, chain.reduction
    n, o, *spatial, v = [loop.name for loop in state[target].iters]
    side_by_side = next(count for count in range(_SUMS, 0, -1) if op.shape[1] % count == 0)
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


def _with_pixels(chain: BlockedChain, task: ScheduleTask, op: ComputeOp) -> LoopState:
    state, target, anchor = chain.state, chain.target, chain.anchor
    n, o, *rows, w, v = [loop.name for loop in state[target].iters]
    taps = op.reduce_axes[-1].extent
    unrolled = taps if taps <= _MOST_TAPS else 1
    state = state.split(target, w, [_pixels(op.shape[-2], unrolled, task.accumulators)])
    is_by_plane = op.shape[1] >= 2 * task.threads or task.threads == 1
    chunks = [o, *rows] if is_by_plane else [*rows, o]
    state = state.reorder(target, [n, *chunks, f"{w}.0", f"{w}.1", v])
    if task.is_parallel(work_of([op])):
        state = state.parallel(target, chunks[0])
    state = state.unroll(target, f"{w}.1").vectorize(target, v).compute_at(anchor, target, f"{w}.0")
    axes = [loop.name for loop in state[anchor].iters]
    outside, tap_names = axes[: len(op.axes)], axes[len(op.axes) :]
    state = state.reorder(anchor, [*outside[:-2], *tap_names, *outside[-2:]])
    if unrolled > 1:
        state = state.unroll(anchor, tap_names[-1])
    return state.unroll(anchor, outside[-2]).vectorize(anchor, outside[-1])


def _pixels(columns: int, taps: int, accumulators: int) -> int:
    """A sum for each pixel, the elements that their windows hold, and a weight for each tap in registers."""
    few = _FEW_PIXELS if columns >= _LONG_ROW else _MOST_PIXELS
    most = max(1, min((accumulators - 2 * taps) // 2 + 1, columns, few))
    costs = {count: -(-columns // count) * 2 + columns % count for count in range(1, most + 1)}
    return min(costs, key=lambda count: (costs[count], count))
