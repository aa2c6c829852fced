"""The loops of one stage: parallel outside, vectorised inside."""

from __future__ import annotations

from math import prod

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Intrinsic, Scalar
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp, IterKind
from intarsia.native.te.functions import IF_THEN_ELSE

_MOST_UNROLLED = 4
"""Steps of a reduction that are written out."""


def with_loops(state: LoopState, name: str, task: ScheduleTask, work: int | None = None) -> LoopState:
    """A stage that stands for itself, its outer loops parallel if there is work, the innermost vectorised.

    Args:
        state: Where the stage has its declared loops.
        name: Of the stage.
        task: The machine.
        work: How many elements are computed in its loops; its own if not given.
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
    """A stage with its last spatial loop innermost and vectorised; the rest of a long one is outside.

    Args:
        state: Where no loop from `first` on has been changed.
        name: Of the stage.
        task: The machine.
        first: The outermost loop that may be taken.
    """
    op = state[name].op
    assert isinstance(op, ComputeOp), "others have no loops"
    loops = state[name].iters
    place = _vector_place(state, name, first)
    if place is None:
        return _with_few_unrolled(state, name)
    inner = loops[place].name
    state = _with_few_unrolled(state, name)
    if not op.reduce_axes:
        return state.vectorize(name, inner) if place == len(loops) - 1 else _last(state, name, inner)
    block = task.lanes(op) * task.by_rows.vectors
    if (loops[place].extent or 0) > block:
        state = state.split(name, inner, [block])
        inner = f"{inner}.1"
    return _last(state, name, inner)


def _with_few_unrolled(state: LoopState, name: str) -> LoopState:
    """Short reductions written out, so that what they read can stay in registers.

    Those with a guard stay loops: a loop can be cut into a part without a guard, and a tail.
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
    return any(isinstance(one, Intrinsic) and one.name == IF_THEN_ELSE for one, _ in scalar_post_order(body))


def _vector_place(state: LoopState, name: str, first: int) -> int | None:
    """The last spatial loop that counts more than once, None if there is none."""
    loops = state[name].iters
    places = [
        place
        for place in range(first, len(loops))
        if loops[place].kind is IterKind.SPATIAL and (loops[place].extent or 0) > 1
    ]
    return places[-1] if places else None


def _last(state: LoopState, name: str, inner: str) -> LoopState:
    names = [loop.name for loop in state[name].iters if loop.name != inner]
    return state.reorder(name, [*names, inner]).vectorize(name, inner)


def _parallel(state: LoopState, name: str, task: ScheduleTask) -> LoopState:
    """As many outer loops as one parallel loop as give every thread some pieces."""
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
    """How many loops from the outermost one on are spatial, and not the innermost of all."""
    loops = state[name].iters
    count = 0
    while count < len(loops) - 1 and loops[count].kind is IterKind.SPATIAL:
        count += 1
    return count


def _chunked(state: LoopState, name: str, wanted: int) -> LoopState:
    """A single loop as pieces, which are parallel."""
    loops = state[name].iters
    if not loops or loops[0].kind is not IterKind.SPATIAL:
        return state
    extent = loops[0].extent or 1
    size = max(1, -(-extent // wanted))
    size = -(-size // 64) * 64
    first = loops[0].name
    return state.split(name, first, [size]).parallel(name, f"{first}.0").vectorize(name, f"{first}.1")
