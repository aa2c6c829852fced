"""Schedules of single stages on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp, IterKind
from intarsia.support.errors import UsageError

WARP: Final = 32
"""Number of threads that execute together, on every NVIDIA GPU."""
BLOCK: Final = 256
"""Usual number of threads of a block: eight warps, which leaves 255 registers to each thread."""
LONG: Final = 64
"""Minimum length of a reduction that the threads of a block share."""
BLOCK_AXIS: Final = "blockIdx.x"
THREAD_AXIS: Final = "threadIdx.x"


def compute_op(state: LoopState, name: str) -> ComputeOp:
    """Return the operation of a stage.

    Raises:
        UsageError: The stage has loops of its own.
    """
    op = state[name].op
    if not isinstance(op, ComputeOp):
        raise UsageError(f"{name} has loops of its own")
    return op


def spatial_count(state: LoopState, name: str) -> int:
    """Return the number of spatial loops of a stage, which come first."""
    return sum(loop.kind is IterKind.SPATIAL for loop in state[name].iters)


def threads_for(count: int, most: int = BLOCK) -> int:
    """Return the number of threads for a number of elements: a power of two, at least a warp."""
    threads = WARP
    while threads < min(count, most):
        threads *= 2
    return threads


def per_element(state: LoopState, name: str) -> LoopState:
    """Schedule a root stage with a thread for each element; a reduction sums in a register.

    Raises:
        UsageError: The stage has loops of its own.
    """
    op = compute_op(state, name)
    if not op.axes:
        return state
    inner = None
    if op.combiner is not None:
        state, inner = _in_registers(state, name)
    state = _fuse_first(state, name, 0, len(op.axes))
    state = state.split(name, 0, [threads_for(prod(op.shape))])
    state = state.bind(name, 0, BLOCK_AXIS).bind(name, 1, THREAD_AXIS)
    return state if inner is None else state.compute_at(inner, name, 1)


def across_threads(state: LoopState, name: str) -> LoopState:
    """Schedule a root stage that reduces with a block for each element, whose threads share the reduction.

    Raises:
        UsageError: The stage has no spatial axis, or does not reduce a long axis.
    """
    op = compute_op(state, name)
    if not op.axes:
        raise UsageError(f"{name} has one element")
    state, partial = partial_results(state, name)
    state, inner = _in_registers(state, name)
    state = _fuse_first(state, name, 0, len(op.axes)).bind(name, 0, BLOCK_AXIS)
    state = state.compute_at(inner, name, 0)
    return computed_together(state, partial, name)


def partial_results(state: LoopState, name: str) -> tuple[LoopState, str]:
    """Add a stage of partial results, one for each thread; return its name too.

    Raises:
        UsageError: The reduction is short.
    """
    op = compute_op(state, name)
    length = prod(axis.extent for axis in op.reduce_axes)
    if not op.reduce_axes or length < LONG:
        raise UsageError(f"{name} reduces {length} elements; expected at least {LONG}")
    rank = len(op.axes)
    state = _fuse_first(state, name, rank, len(op.reduce_axes))
    reduction = state[name].iters[rank].name
    position = state.stage_id(name)
    state = state.split(name, rank, [threads_for(length // 4)]).rfactor(name, f"{reduction}.1", rank)
    return state, state.stages[position].op.name


def computed_together(state: LoopState, name: str, target: str) -> LoopState:
    """Compute a stage inside the first loop of another one, its elements shared among the threads."""
    op = compute_op(state, name)
    inner = None
    if op.combiner is not None:
        state, inner = _in_registers(state, name)
    state = state.compute_at(name, target, 0)
    state = _fuse_first(state, name, 0, len(op.axes))
    state = state.split(name, 0, [threads_for(op.shape[-1])]).bind(name, 1, THREAD_AXIS)
    return state if inner is None else state.compute_at(inner, name, 1)


def in_rows(state: LoopState, target: str, members: Sequence[str], depth: int) -> LoopState:
    """Schedule stages that share their outer axes as one kernel, a block for each row.

    Args:
        state: State in which no loop of the stages has been changed.
        target: Stage that reads the others.
        members: Stages that are computed in its rows.
        depth: Number of outer axes that all share.

    Raises:
        UsageError: A stage has loops of its own.
    """
    op = compute_op(state, target)
    names = list(members)
    if op.combiner is not None:
        state, inner = _in_registers(state, target)
        names.append(inner)
    rest = len(op.axes) - depth
    state = _fuse_first(state, target, 0, depth).bind(target, 0, BLOCK_AXIS)
    if rest:
        state = _fuse_first(state, target, 1, rest)
        state = state.split(target, 1, [threads_for(prod(op.shape[depth:]))]).bind(target, 2, THREAD_AXIS)
    for name in reversed(names):
        state = _in_row(state, name, target, depth)
    return state


def _in_row(state: LoopState, name: str, target: str, depth: int) -> LoopState:
    op = compute_op(state, name)
    is_one = prod(op.shape[depth:]) == 1
    if not is_one:
        return computed_together(state, name, target)
    if op.combiner is None or prod(axis.extent for axis in op.reduce_axes) < LONG:
        return state.compute_at(name, target, 0)  # each thread computes it for itself
    state, partial = partial_results(state, name)
    return computed_together(state.compute_at(name, target, 0), partial, target)


def _in_registers(state: LoopState, name: str) -> tuple[LoopState, str]:
    """Compute a stage in a stage before it, which a thread keeps in registers; return its name too."""
    position = state.stage_id(name)
    state = state.cache_write(name, "local")
    return state, state.stages[position].op.name


def _fuse_first(state: LoopState, name: str, first: int, count: int) -> LoopState:
    return state.fuse(name, range(first, first + count)) if count > 1 else state
