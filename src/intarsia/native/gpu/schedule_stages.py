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
RADIX: Final = 8
"""Number of partial results that a thread combines: fewer need more barriers, more leave threads idle."""
_MANY: Final = 64
"""Number of blocks from which on a GPU is busy enough."""
_SHARE: Final = 4096
"""Minimum number of elements that a block reduces before several blocks share a reduction."""
_MOST_PARTS: Final = 256
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
    state, partials = partial_results(state, name)
    state, inner = _in_registers(state, name)
    state = _fuse_first(state, name, 0, len(op.axes)).bind(name, 0, BLOCK_AXIS)
    state = state.compute_at(inner, name, 0)
    return _all_together(state, partials, name)


def partial_results(state: LoopState, name: str) -> tuple[LoopState, list[str]]:
    """Add stages of partial results: one for each thread, then one for every RADIX of the stage before.

    Returns:
        The state, and the names of the stages in the order of their computation; `name` combines the results
        of the last one, RADIX at most.

    Raises:
        UsageError: The reduction is short.
    """
    op = compute_op(state, name)
    length = _reduced_length(op)
    if length < LONG:
        raise UsageError(f"{name} reduces {length} elements; expected at least {LONG}")
    state = _fuse_first(state, name, len(op.axes), len(op.reduce_axes))
    count = threads_for(length // 4)
    state, partial = _partial_stage(state, name, count)
    partials = [partial]
    while count > RADIX:
        count //= RADIX
        state, partial = _partial_stage(state, name, count)
        partials.append(partial)
    return state, partials


def _partial_stage(state: LoopState, name: str, count: int, level: int = 1) -> tuple[LoopState, str]:
    """Add a stage of partial results of the only reduced loop of a stage; return its name too.

    Args:
        state: The state.
        name: Name of the stage.
        count: Extent of the inner one of the two loops that the reduced loop is split into.
        level: Loop whose iterations have partial results: 0 for the outer one, 1 for the inner one.
    """
    rank = spatial_count(state, name)
    reduction = state[name].iters[rank].name
    position = state.stage_id(name)
    state = state.split(name, rank, [count]).rfactor(name, f"{reduction}.{level}", rank)
    return state, state.stages[position].op.name


def _reduced_length(op: ComputeOp) -> int:
    """Return the number of elements that each result of an operation is of; 0 if it reduces nothing."""
    return prod(axis.extent for axis in op.reduce_axes) if op.reduce_axes else 0


def over_blocks(state: LoopState, name: str) -> LoopState:
    """Schedule a root stage of few long reductions: many blocks compute partial results of each.

    Raises:
        UsageError: There are many results, or they are of few elements.
    """
    op = compute_op(state, name)
    length, results = _reduced_length(op), prod(op.shape)
    # A scalar has no loop that a block could take: its reduction is left to one thread in the end.
    parts = _parts(length, _SHARE if op.axes else RADIX)
    if results >= _MANY or parts < RADIX:
        raise UsageError(f"{name} has {results} results of {length} elements; expected few long reductions")
    state = _fuse_first(state, name, len(op.axes), len(op.reduce_axes))
    while parts >= RADIX:
        share = -(-length // parts)
        if share >= LONG:  # a block reads elements that follow each other
            state, partial = _partial_stage(state, name, share, level=0)
            state = across_threads(state, partial)
        else:
            state, partial = _partial_stage(state, name, parts)
            state = per_element(state, partial)
        length, parts = parts, 0 if op.axes else _parts(parts, RADIX)
    if not op.axes:
        return state
    return across_threads(state, name) if length >= LONG else per_element(state, name)


def _parts(length: int, share: int) -> int:
    """Return the number of partial results over blocks: a power of two, with a share of elements each."""
    parts = 1
    while parts < _MOST_PARTS and parts * 2 * max(share, parts // 2) <= length:
        parts *= 2
    return parts


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
    state, partials = partial_results(state, name)
    return _all_together(state.compute_at(name, target, 0), partials, target)


def _all_together(state: LoopState, names: Sequence[str], target: str) -> LoopState:
    """Compute stages, each of which reads the one before, inside the first loop of another one."""
    for name in reversed(names):
        state = computed_together(state, name, target)
    return state


def _in_registers(state: LoopState, name: str) -> tuple[LoopState, str]:
    """Compute a stage in a stage before it, which a thread keeps in registers; return its name too."""
    position = state.stage_id(name)
    state = state.cache_write(name, "local")
    return state, state.stages[position].op.name


def _fuse_first(state: LoopState, name: str, first: int, count: int) -> LoopState:
    return state.fuse(name, range(first, first + count)) if count > 1 else state
