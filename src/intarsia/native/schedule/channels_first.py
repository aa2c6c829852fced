"""Schedule of convolutions with channels first: register tiles of filters by rows by vectors of pixels.

for images, for groups
  the padded copy of what the group reads
  for bands of rows; for vectors of pixels; for tiles of filters
    for channels of the input, for taps
      for filters, rows and vectors of the tile, unrolled
        for pixels of a vector, vectorised
          tile += input * weight
    for filters, rows and vectors: result = what follows(tile)

Threads share images and groups; where these are too few, bands of rows too, and the whole input is padded
first.

Where filters, or those of a group, are much fewer than the lanes of a vector, blocks of filters would be
mostly padding; pixels of a row fill vectors whatever the number of filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Load, LoopVar, Scalar
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain, chain_around
from intarsia.native.schedule.channels_last import depends_on
from intarsia.native.schedule.convolution_order import ENOUGH, share_of_time
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.schedule.stage_loops import with_loops, with_vectors
from intarsia.native.te import ComputeOp, Operation
from intarsia.native.tir.affine import Affine, affine

_KIND: Final = "channels first"
_LEAST_WORK: Final = 64
"""Number of multiplications from which tiles pay off."""
_MOST_FILTERS: Final = 8
"""Maximum number of filters of a tile; each needs a load of a weight in every step."""
_MOST_ROWS: Final = 6
_MOST_VECTORS: Final = 4
# Costs in multiplications of a vector.
_LOAD_COST: Final = 0.6
"""Cost of loading a vector of pixels or a weight; loads and multiplications overlap, but not completely."""
_STEP_COST: Final = 2.0
"""Overhead of a reduction step: counters and branches."""
_ROWS_OF_OVERLAP: Final = 4
"""Rows of a band for each row that the next band copies as well."""
_SHAPE_COST: Final = 0.02
"""Cost of each extra tile shape, which needs more code and compile time."""


class ChannelsFirstChoice(NamedTuple):
    """The size of a register tile.

    Attributes:
        filters: Number of filters, all of one group.
        rows: Number of rows of the image.
        vectors: Number of vectors of pixels of a row.
    """

    filters: int
    rows: int
    vectors: int


class ChannelsFirstForm(NamedTuple):
    """A sum over channels and taps of products of pixels of a row and weights.

    Attributes:
        op: Operation with the axes (images, filters, spatial ...), whose last axis is that of pixels.
        image: Operation that produces the input.
        is_padded: Whether `image` is computed for `op` only, as a padded copy is.
        groups: Number of groups of filters that read other channels each.
    """

    op: ComputeOp
    image: Operation
    is_padded: bool
    groups: int

    def lanes(self, task: ScheduleTask) -> int:
        """Return the number of pixels of a vector."""
        return task.lanes(self.op) if task.has_masks else min(task.lanes(self.op), self.op.axes[-1].extent)

    def tiled_extents(self, task: ScheduleTask) -> tuple[int, int, int]:
        """Return the numbers of filters of a group, of rows, and of vectors of a row."""
        _, filters, *outer, columns = (axis.extent for axis in self.op.axes)
        return filters // self.groups, outer[-1] if outer else 1, -(-columns // self.lanes(task))

    def choices(self, task: ScheduleTask) -> list[ChannelsFirstChoice]:
        """Return the register tiles that results fill and registers hold."""
        sizes = (
            range(1, min(extent, most) + 1)
            for extent, most in zip(
                self.tiled_extents(task), (_MOST_FILTERS, _MOST_ROWS, _MOST_VECTORS), strict=True
            )
        )
        tiles = (ChannelsFirstChoice(*tile) for tile in product(*sizes))
        return [tile for tile in tiles if prod(tile) <= task.accumulators]

    @property
    def phases(self) -> int:
        """Number of phases that the columns of the input are split into; 1 if they are not."""
        shape = self.image.buffers[0].shape
        return shape[-2] if len(shape) > len(self.op.axes) else 1


def channels_first_form(op: Operation, task: ScheduleTask) -> ChannelsFirstForm | None:
    """Match an operation as a convolution of plain tensors; None if it is none."""
    if not isinstance(op, ComputeOp) or op.combiner is None or op.combiner.name != "sum":
        return None
    if len(op.axes) < 3 or len(op.reduce_axes) < 2 or len(op.bodies) != 1:
        return None
    match op.bodies[0]:
        case Arith(op=ArithOp.MUL, operands=(Load() as left, Load() as right)):
            pixel = op.axes[-1].var
            image, weight = (left, right) if depends_on(left.indices, pixel) else (right, left)
        case _:
            return None
    number, filter_, *positions = (axis.var for axis in op.axes)
    is_shared = not any(depends_on(weight.indices, var) for var in (number, *positions))
    if not is_shared or image.buffer == weight.buffer or weight.indices[0] != filter_:
        return None
    dimensions = len(image.buffer.shape) - len(op.axes)  # columns in phases have one more
    if dimensions not in (0, 1) or not _is_contiguous(image.indices[-1], positions[-1]):
        return None
    if depends_on((image.indices[0], *image.indices[2:]), filter_) or depends_on(
        image.indices[:-1], positions[-1]
    ):
        return None
    groups = _groups(image.indices[1], filter_, op.axes[1].extent)
    if groups is None:
        return None
    source = next(tensor.op for tensor in op.inputs if tensor.buffer == image.buffer)
    is_own = task.dag.readers[source] == (op,) and not task.dag.is_output(source)
    is_computed = isinstance(source, ComputeOp) and source.combiner is None
    return ChannelsFirstForm(op, source, is_own and is_computed, groups)


def _is_contiguous(index: Scalar, var: LoopVar) -> bool:
    """Return whether an index is a variable, or its sum with what does not depend on it."""
    match index:
        case Arith(op=ArithOp.ADD, operands=(left, right)):
            if depends_on((right,), var):
                left, right = right, left
            return _is_contiguous(left, var) and not depends_on((right,), var)
        case _:
            return index == var


def _groups(channel: Scalar, filter_: LoopVar, filters: int) -> int | None:
    """Return the number of groups by the index of a channel; None if it has another form."""
    if not depends_on((channel,), filter_):
        return 1
    if affine(channel) == Affine({filter_: 1}):
        return filters
    for part, _ in scalar_post_order(channel):
        match part:
            case Arith(op=ArithOp.FLOOR_DIV, operands=(dividend, divisor)) if dividend == filter_:
                size = getattr(divisor, "value", 0)
                return filters // size if size and filters % size == 0 else None
    return None


def only_channels_first(task: ScheduleTask) -> ChannelsFirstForm | None:
    """Return the only convolution with channels first of a DAG; None if it has none, or several."""
    forms = [form for op in task.dag.ops if (form := channels_first_form(op, task)) is not None]
    return forms[0] if len(forms) == 1 and work_of([forms[0].op]) >= _LEAST_WORK else None


def channels_first_state(task: ScheduleTask, choice: ChannelsFirstChoice | None = None) -> LoopState | None:
    """Return the state of a DAG around one convolution with channels first; None for others.

    Args:
        task: DAG and machine.
        choice: Choice to apply; the default choice if not given.
    """
    form = only_channels_first(task)
    if form is None:
        return None
    chain = chain_around(task, form.op, form.image.name if form.is_padded else None, _KIND)
    choice = choice or channels_first_choice(form, task)
    is_parallel = task.is_parallel(work_of([form.op]))
    bands = _bands(form, choice, task) if chain.pad is not None else None
    by_groups = _is_by_groups(form, task)
    state = _with_results(chain, form, choice, task, bands, by_groups=by_groups)
    state = _with_sums(state, chain, form.phases, choice)
    if chain.pad is not None and (by_groups or bands is not None):
        # Images and groups are one loop, or two; bands of rows are one more, or part of that.
        around = 0 if is_parallel else 1
        around += bands is not None and (by_groups or not is_parallel)
        state = with_vectors(state, chain.pad, task).compute_at(chain.pad, chain.target, around)
    elif chain.pad is not None:
        state = with_loops(state, chain.pad, task)
    return chain.with_rest(state, task)


def _is_by_groups(form: ChannelsFirstForm, task: ScheduleTask) -> bool:
    """Return whether each thread computes whole groups of an image, and pads what a group reads just before.

    Row by row, all groups would be read in pieces as wide as a tile, each on another page.
    """
    count = form.op.axes[0].extent * form.groups
    return not task.is_parallel(work_of([form.op])) or share_of_time(count, task.threads) >= ENOUGH


def _bands(form: ChannelsFirstForm, tile: ChannelsFirstChoice, task: ScheduleTask) -> int | None:
    """Return for how many rows of tiles padded copies are made; None for one copy of all that a group reads.

    A copy that exceeds the second-level cache is written to memory, and read from there. Windows of
    neighbouring bands overlap, and these rows are copied twice: bands are high enough that they are few.
    Where strides leave no overlap, reading the input takes most of the time, which long pieces make faster.
    """
    shape, itemsize = form.image.buffers[0].shape, form.op.dtypes[0].numpy.itemsize
    rows = _row_index(form)
    if rows is None or prod(shape[1:]) // form.groups * itemsize <= task.isa.caches.second:
        return None
    axis = form.op.axes[2]
    extents = {item.var: item.extent for item in form.op.reduce_axes}
    stride = rows.factor_of(axis.var)
    reach = sum(
        abs(factor) * (extents[term] - 1)
        for term, factor in rows.terms.items()
        if isinstance(term, LoopVar) and term in extents
    )
    count = -(-axis.extent // tile.rows)
    overlap = reach + 1 - stride
    bands = max(1, -(-overlap * _ROWS_OF_OVERLAP // (tile.rows * stride)))
    is_even = (
        not task.is_parallel(work_of([form.op])) or share_of_time(-(-count // bands), task.threads) >= ENOUGH
    )
    return bands if overlap > 0 and bands < count and is_even else None


def _row_index(form: ChannelsFirstForm) -> Affine | None:
    """Return the index of the rows of the input, of images of two dimensions that are padded; else None."""
    if len(form.op.axes) != 4 or not form.is_padded:
        return None
    reads = [
        part
        for part, _ in scalar_post_order(form.op.bodies[0])
        if isinstance(part, Load) and part.buffer == form.image.buffers[0]
    ]
    return affine(reads[0].indices[2])


def _with_results(
    chain: BlockedChain,
    form: ChannelsFirstForm,
    tile: ChannelsFirstChoice,
    task: ScheduleTask,
    bands: int | None,
    *,
    by_groups: bool,
) -> LoopState:
    """Order the loops: images, groups, rows, pixels, filters, then the elements of a tile.

    Args:
        chain: Stages around the sums.
        form: The sums.
        tile: Size of a register tile.
        task: DAG and machine.
        bands: Number of rows of tiles that a padded copy is made for; None for one copy of all rows.
        by_groups: Whether threads share images and groups only.
    """
    state, target = chain.state, chain.target
    number, filter_, *outer, pixel = (loop.name for loop in state[target].iters)
    of_group = form.op.axes[1].extent // form.groups
    # Tiles begin anew with each group: filters of one tile read the same channels.
    state = state.split(target, filter_, [of_group]).split(target, f"{filter_}.1", [tile.filters])
    state = state.split(target, pixel, [tile.vectors, form.lanes(task)])
    inner = [f"{filter_}.1.1", f"{pixel}.1", f"{pixel}.2"]
    if outer:
        state = state.split(target, outer[-1], [tile.rows])
        inner.insert(1, f"{outer[-1]}.1")
        outer[-1] = f"{outer[-1]}.0"
    shared, rest = [number, f"{filter_}.0"], [*outer, f"{pixel}.0"]
    if bands is not None:
        state = state.split(target, outer[-1], [bands])
        rest = [f"{outer[-1]}.0", f"{outer[-1]}.1", f"{pixel}.0"]
    if not by_groups:
        count = len(rest) if bands is None else 1
        shared, rest = [*shared, *rest[:count]], rest[count:]
    state = state.reorder(target, [*shared, *rest, f"{filter_}.1.0", *inner])
    for name in inner[:-1]:
        state = state.unroll(target, name)
    state = state.vectorize(target, inner[-1])
    if task.is_parallel(work_of([form.op])):
        state = state.fuse(target, range(len(shared))).parallel(target, 0)
    return state


def _with_sums(state: LoopState, chain: BlockedChain, phases: int, choice: ChannelsFirstChoice) -> LoopState:
    """Put the reduction loops outside the loops over a register tile, in the loop over tiles of filters.

    Taps of a row are split by phases, so that no index is a quotient. In a tile, what is fewer is innermost,
    weights or vectors of pixels, and stays in registers while each of the others is read once.
    """
    anchor, count = chain.anchor, len(chain.reduction.axes)
    names = [loop.name for loop in state[anchor].iters]
    *tile, lane = names[:count]
    reduced, taps = names[count:], chain.reduction.reduce_axes[-1].extent
    if 1 < phases < taps:
        state = state.split(anchor, reduced[-1], [phases])
        reduced = [*reduced[:-1], f"{reduced[-1]}.0", f"{reduced[-1]}.1"]
    number, filter_, *rows = tile
    tile = [number, *rows, filter_] if choice.filters <= choice.rows * choice.vectors else tile
    state = state.reorder(anchor, [*reduced, *tile, lane])
    for name in tile:
        state = state.unroll(anchor, name)
    tiles = f"{chain.state[chain.target].iters[1].name}.1.0"
    return state.vectorize(anchor, lane).compute_at(anchor, chain.target, tiles)


def channels_first_choice(form: ChannelsFirstForm, task: ScheduleTask) -> ChannelsFirstChoice:
    """Return the register tile with the least cost per result, remainders included."""
    extents = form.tiled_extents(task)
    choices = [
        choice
        for choice in form.choices(task)
        if prod(choice) + min(choice.rows * choice.vectors, choice.filters) <= task.isa.vector_registers - 2
    ] or [ChannelsFirstChoice(1, 1, 1)]
    costs = {choice: _cost(choice, extents) for choice in choices}
    return min(choices, key=lambda choice: (costs[choice], choice))


def _cost(choice: ChannelsFirstChoice, extents: Sequence[int]) -> float:
    """Return the cost of a step of all sums of an image and a group, in multiplications of vectors."""
    pieces = [_pieces(extent, size) for extent, size in zip(extents, choice, strict=True)]
    cost = sum(
        prod((many, down, across))
        * (filters * rows * vectors + _LOAD_COST * (rows * vectors + filters) + _STEP_COST)
        for (many, filters), (down, rows), (across, vectors) in product(*pieces)
    )
    return cost * (1 + _SHAPE_COST * (prod(map(len, pieces)) - 1))


def _pieces(extent: int, size: int) -> list[tuple[int, int]]:
    """Return how many pieces an extent has of each size."""
    whole, rest = divmod(extent, size)
    return [(many, length) for many, length in ((whole, size), (1, rest)) if many and length]
