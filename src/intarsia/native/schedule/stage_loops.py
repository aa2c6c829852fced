"""Loops of one stage: parallel outside, vectorised inside."""

from __future__ import annotations

from math import prod

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Intrinsic, Scalar
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp, IterKind
from intarsia.native.te.functions import IF_THEN_ELSE

_MOST_UNROLLED = 4
"""Maximum number of steps of a reduction that is unrolled."""


def with_loops(state: LoopState, name: str, task: ScheduleTask, work: int | None = None) -> LoopState:
    """Schedule a root stage: outer loops parallel if there is enough work, the innermost vectorised.

    Args:
        state: State in which the stage has its declared loops.
        name: Name of the stage.
        task: DAG and machine.
        work: Number of elements computed in its loops; those of the stage alone if not given.
    """
    op = state[name].op
    if not isinstance(op, ComputeOp):
        return state
    work = work_of([op]) if work is None else work
    state = with_vectors(state, name, task)
    if task.is_parallel(work):
        state = _parallel(state, name, task)
    return state


def with_vectors(state: LoopState, name: str, task: ScheduleTask, first: int = 0) -> LoopState:
    """Vectorise the last spatial loop of a stage as the innermost one; a long loop is split first.

    Args:
        state: State in which no loop from `first` on has been changed.
        name: Name of the stage.
        task: DAG and machine.
        first: Number of the outermost loop that may be vectorised.
    """
    op = state[name].op
    assert isinstance(op, ComputeOp), "others have no loops"
    loops = state[name].iters
    position = _vector_place(state, name, first)
    if position is None:
        return _with_few_unrolled(state, name)
    inner = loops[position].name
    state = _with_few_unrolled(state, name)
    if not op.reduce_axes:
        return state.vectorize(name, inner) if position == len(loops) - 1 else _last(state, name, inner)
    block = _block_of_sums(op, loops[position].extent or 0, task)
    if (loops[position].extent or 0) > block:
        state = state.split(name, inner, [block])
        inner = f"{inner}.1"
    return _last(state, name, inner)


def _block_of_sums(op: ComputeOp, extent: int, task: ScheduleTask) -> int:
    """Return the length of the pieces in which rows are summed, which stay in registers.

    Each piece is another pass over all rows, and reads parts of cache lines again that belong to neighbours.
    So a row whose sums fit in registers is one piece, unless all rows stay in the second-level cache.
    """
    has_functions = any(
        isinstance(part, Intrinsic) for body in op.bodies for part, _ in scalar_post_order(body)
    )
    registers = task.accumulators // 2 if has_functions else task.accumulators - 1
    lanes = task.lanes(op)
    is_cached = work_of([op]) * max(dtype.numpy.itemsize for dtype in op.dtypes) <= task.isa.caches.second
    if is_cached or extent > lanes * registers:
        return lanes * task.by_rows.vectors
    return -(-extent // lanes) * lanes


def _with_few_unrolled(state: LoopState, name: str) -> LoopState:
    """Unroll short reductions, so that their inputs can stay in registers.

    Guarded reductions stay loops, which can be partitioned into a part without guard and a remainder.
    """
    op = state[name].op
    loops = [loop for loop in state[name].iters if loop.kind is IterKind.REDUCTION]
    if isinstance(op, ComputeOp) and any(map(_has_guard, op.bodies)):
        return state
    if loops and prod(loop.extent or 1 for loop in loops) <= _MOST_UNROLLED:
        for loop in loops:
            state = state.unroll(name, loop)
    return state


def _has_guard(body: Scalar) -> bool:
    return any(
        isinstance(part, Intrinsic) and part.name == IF_THEN_ELSE for part, _ in scalar_post_order(body)
    )


def _vector_place(state: LoopState, name: str, first: int) -> int | None:
    """Return the number of the last spatial loop of several iterations, None if there is none."""
    loops = state[name].iters
    positions = [
        position
        for position in range(first, len(loops))
        if loops[position].kind is IterKind.SPATIAL and (loops[position].extent or 0) > 1
    ]
    return positions[-1] if positions else None


def _last(state: LoopState, name: str, inner: str) -> LoopState:
    names = [loop.name for loop in state[name].iters if loop.name != inner]
    return state.reorder(name, [*names, inner]).vectorize(name, inner)


def _parallel(state: LoopState, name: str, task: ScheduleTask) -> LoopState:
    """Fuse outer loops into a parallel loop until every thread has enough chunks."""
    wanted = task.threads * task.by_rows.chunks
    loops = state[name].iters
    outer = _outer(state, name)
    if not outer:
        return _chunked(state, name, wanted)
    extents = [loop.extent or 1 for loop in loops[:outer]]
    count = next((n for n in range(1, outer + 1) if prod(extents[:n]) >= wanted), outer)
    if count > 1:
        state = state.fuse(name, range(count))
    return state.parallel(name, 0)


def _outer(state: LoopState, name: str) -> int:
    """Return the number of outer loops that are spatial, without the innermost loop."""
    loops = state[name].iters
    count = 0
    while count < len(loops) - 1 and loops[count].kind is IterKind.SPATIAL:
        count += 1
    return count


def _chunked(state: LoopState, name: str, wanted: int) -> LoopState:
    """Split a single loop into parallel chunks."""
    loops = state[name].iters
    if not loops or loops[0].kind is not IterKind.SPATIAL:
        return state
    extent = loops[0].extent or 1
    size = max(1, -(-extent // wanted))
    # Multiples of 64 elements keep chunks on whole vectors and cache lines.
    size = -(-size // 64) * 64
    first = loops[0].name
    return state.split(name, first, [size]).parallel(name, f"{first}.0").vectorize(name, f"{first}.1")
