"""Schedule of convolutions with channels last: register tiles of pixels by channels.

for bands of rows, parallel
  the padded copy of what the band reads
  for tiles of channels, for rows of the band, for tiles of pixels
    for taps, for channels of the input
      for pixels of the tile, unrolled
        for channels of the tile, vectorised
          tile += input * weight
    for pixels, for channels: result = what follows(tile)

A row of the image is the left matrix of a product, and the weights of a tap are the right one, so the tile is
that of a product. Constant weights are packed in the order in which a tile reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Load, LoopVar, Scalar
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain, chain_around
from intarsia.native.schedule.convolution_order import ENOUGH, share_of_time
from intarsia.native.schedule.gemm_tile import GemmTile, gemm_tile
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.schedule.stage_loops import with_loops
from intarsia.native.te import ComputeOp, Operation

_KIND: Final = "channels last"
_LEAST_WORK: Final = 64
"""Number of multiplications from which tiles pay off."""
_BAND_SHARE: Final = 4
"""Divisor of the second-level cache size that gives the memory for the input of a band."""
_WEIGHT_SHARE: Final = 2
"""Divisor for the memory of weights that each thread reads again for each band."""
_LEAST_BAND: Final = 3
"""Minimum number of rows of a band that is padded separately; shorter bands copy too many rows twice."""
_PIECES: Final = 4
"""Minimum number of bands per thread, so that a late band delays the others only briefly."""


@dataclass(frozen=True, slots=True)
class ChannelsLastForm:
    """A sum over taps and channels of products of an input and weights.

    Attributes:
        op: Operation whose last axis is that of channels, and the one before that of pixels.
        image: Operation that produces the input of each pixel.
        is_padded: Whether `image` is computed for `op` only, as a padded copy is.
    """

    op: ComputeOp
    image: Operation
    is_padded: bool

    @property
    def weight_bytes(self) -> int:
        """Size of the weights in bytes: one for each channel of the result and each step of its sums."""
        extents = (self.op.axes[-1].extent, *(axis.extent for axis in self.op.reduce_axes))
        return prod(extents) * self.op.dtypes[0].numpy.itemsize

    @property
    def row_bytes(self) -> int:
        """Size in bytes of the input that one row of results reads."""
        return prod(self.image.buffers[0].shape[-2:]) * self.op.dtypes[0].numpy.itemsize


def channels_last_form(op: Operation, task: ScheduleTask) -> ChannelsLastForm | None:
    """Match an operation as a convolution with channels last; None if it is none."""
    if not isinstance(op, ComputeOp) or op.combiner is None or op.combiner.name != "sum":
        return None
    if len(op.axes) < 3 or len(op.reduce_axes) < 2 or len(op.bodies) != 1:
        return None
    match op.bodies[0]:
        case Arith(op=ArithOp.MUL, operands=(Load() as left, Load() as right)):
            image, weight = (left, right) if depends_on(right.indices, op.axes[-1].var) else (right, left)
        case _:
            return None
    *others, channel = (axis.var for axis in op.axes)
    is_last = weight.indices[-1] == channel and not depends_on(image.indices, channel)
    is_shared = not any(depends_on(weight.indices, var) for var in others)
    if not (is_last and is_shared and image.buffer != weight.buffer):
        return None
    if not depends_on(image.indices[-1:], op.reduce_axes[-1].var) or len(image.buffer.shape) != len(op.axes):
        return None
    source = next(tensor.op for tensor in op.inputs if tensor.buffer == image.buffer)
    is_own = task.dag.readers[source] == (op,) and not task.dag.is_output(source)
    is_computed = isinstance(source, ComputeOp) and source.combiner is None
    return ChannelsLastForm(op, source, is_own and is_computed)


def depends_on(indices: Iterable[Scalar], var: LoopVar) -> bool:
    """Return whether a variable is in one of several indices."""
    return any(part == var for index in indices for part, _ in scalar_post_order(index))


def channels_last_state(task: ScheduleTask) -> LoopState | None:
    """Return the state of a DAG around one convolution with channels last; None for others."""
    forms = [form for op in task.dag.ops if (form := channels_last_form(op, task)) is not None]
    if len(forms) != 1 or work_of([forms[0].op]) < _LEAST_WORK:
        return None
    (form,) = forms
    threads = task.threads if task.is_parallel(work_of([form.op])) else 1
    width, channels = (axis.extent for axis in form.op.axes[-2:])
    tile = gemm_tile(width, channels, task.lanes(form.op), task.accumulators, costs=task.costs)
    order = _order(form, tile, task, threads)
    chain = chain_around(task, form.op, form.image.name if form.is_padded else None, _KIND)
    state = _with_results(chain, tile, order, is_parallel=threads > 1)
    state = _with_sums(state, chain)
    if chain.pad is not None and order.pads_bands:
        lane = state[chain.pad].iters[-1].name
        state = state.compute_at(chain.pad, chain.target, len(form.op.axes) - 3)
        state = state.vectorize(chain.pad, lane)
    elif chain.pad is not None:
        state = with_loops(state, chain.pad, task)
    return chain.with_rest(state, task)


def _with_results(chain: BlockedChain, tile: GemmTile, order: _Order, *, is_parallel: bool) -> LoopState:
    """Order the loops: bands of rows or tiles of channels, the other of both, then the elements of a tile."""
    state, target = chain.state, chain.target
    *outer, row, width, channel = (loop.name for loop in state[target].iters)
    state = state.split(target, channel, [tile.columns]).split(target, width, [tile.rows])
    state = state.split(target, row, [order.band])
    shared = [f"{row}.0", f"{channel}.0"]
    first, second = reversed(shared) if order.is_by_channels else shared
    inner = [f"{width}.1", f"{channel}.1"]
    state = state.reorder(target, [*outer, first, second, f"{row}.1", f"{width}.0", *inner])
    if is_parallel:
        state = state.parallel(target, first)
    return state.unroll(target, inner[0]).vectorize(target, inner[1])


def _with_sums(state: LoopState, chain: BlockedChain) -> LoopState:
    """Put the reduction loops outside the loops over a register tile."""
    anchor, count = chain.anchor, len(chain.reduction.axes)
    names = [loop.name for loop in state[anchor].iters]
    *outer, width, channel = names[:count]
    state = state.reorder(anchor, [*outer, *names[count:], width, channel])
    return state.unroll(anchor, width).vectorize(anchor, channel).compute_at(anchor, chain.target, count)


class _Order(NamedTuple):
    """Order in which tiles are computed.

    Attributes:
        band: Number of rows that are computed together.
        is_by_channels: Whether all rows of a tile of channels come before the next tile, so that weights are
            read once; threads then share the channels, else the bands.
        pads_bands: Whether the image is padded band by band, by the thread that reads it.
    """

    band: int
    is_by_channels: bool
    pads_bands: bool


def _order(form: ChannelsLastForm, tile: GemmTile, task: ScheduleTask, threads: int) -> _Order:
    """Choose bands whose input stays in the cache and that keep all threads equally busy.

    A shorter last band needs separate code, so bands should divide the rows.
    """
    rows, second = form.op.axes[-3].extent, task.isa.caches.second
    by_channels = share_of_time(-(-form.op.axes[-1].extent // tile.columns), threads)
    is_balanced = by_channels >= min(ENOUGH, share_of_time(rows, threads))
    if form.weight_bytes > second // _WEIGHT_SHARE and is_balanced:
        return _Order(rows, is_by_channels=True, pads_bands=False)
    most = max(1, min(rows, second // _BAND_SHARE // max(1, form.row_bytes)))
    if threads > 1:
        most = max(1, min(most, rows // (threads * _PIECES)))

    def worth(size: int) -> tuple[bool, bool, int]:
        return share_of_time(-(-rows // size), threads) >= ENOUGH, rows % size == 0, size

    band = max(range(1, most + 1), key=worth)
    return _Order(band, is_by_channels=False, pads_bands=band >= _LEAST_BAND)
