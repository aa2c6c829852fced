"""Loops that a stage may be computed in."""

from __future__ import annotations

from typing import TypeAlias

from intarsia.autoschedule.sketch.stage_facts import is_placed, is_tiled, needs_multi_level_tiling
from intarsia.native.loop_state import ComputeAt, Iterator, IteratorAnnotation, LoopState
from intarsia.native.loop_state.relatives import consumers
from intarsia.native.te import ComputeOp, IterKind

Location: TypeAlias = tuple[int, int]
"""A stage, and the place of a loop in it."""


def is_movable(state: LoopState, stage_id: int) -> bool:
    """Whether a stage may be computed elsewhere: it is no result, is not inlined, and has no tiles."""
    stage = state.stages[stage_id]
    is_kept = state.current_dag.is_output(stage.op) or not isinstance(stage.op, ComputeOp)
    return (
        is_placed(stage)
        and not is_kept
        and not is_tiled(stage)
        and not needs_multi_level_tiling(state, stage_id)
    )


def compute_locations(state: LoopState, stage_id: int) -> tuple[Location, ...]:
    """The loops that a stage may be computed in, outermost first (Ansor, section 4.2).

    Loops of its only reader, down to the reductions of it, or with tiles to the innermost of them; then, if
    that reader is inside another stage, loops around it. Unrolled ones and those of one iteration are none.

    Args:
        state: With the ranges of all loops; one without counts as longer than 1.
        stage_id: A stage.
    """
    target_id = _reader_or_root(state, stage_id)
    if target_id is None:
        return ()
    found = _in_reader(state, target_id)
    if state.stages[target_id].compute_at is ComputeAt.ITER:
        found += _around_reader(state, target_id)
    return tuple(found)


def _in_reader(state: LoopState, target_id: int) -> list[Location]:
    target, has_reduced, found = state.stages[target_id], False, list[Location]()
    is_inside = target.compute_at is ComputeAt.ITER
    for place, loop in enumerate(target.iters):
        if loop.kind is IterKind.REDUCTION:
            has_reduced = True
            if not is_tiled(target):
                break
        elif loop.kind is IterKind.SPATIAL and has_reduced:
            break
        if loop.annotation is IteratorAnnotation.UNROLL:
            break
        if loop.extent == 1 or (is_inside and _is_outermost_tile(loop)):
            continue
        found.append((target_id, place))
        if (target_id, place) in state.attach_map.attached:
            break
    return found


def _is_outermost_tile(loop: Iterator) -> bool:
    """Of a stage inside another one, such a loop counts once."""
    return loop.kind is IterKind.SPATIAL and loop.name.endswith(".0")


def _around_reader(state: LoopState, target_id: int) -> list[Location]:
    around_id, inner = state.attach_map.places[target_id]
    found = []
    for place, loop in enumerate(state.stages[around_id].iters[: inner + 1]):
        is_end = loop.kind is IterKind.REDUCTION or loop.annotation is IteratorAnnotation.UNROLL
        if is_end or (around_id, place) in state.attach_map.attached:
            break
        if loop.extent != 1:
            found.append((around_id, place))
    return found


def _reader_or_root(state: LoopState, stage_id: int) -> int | None:
    """The only reader, or the stage that all readers are in."""
    readers = consumers(state, stage_id)
    if len(readers) == 1:
        return next(iter(readers))
    roots = {
        reader if state.stages[reader].compute_at is ComputeAt.ROOT else state.attach_map.places[reader][0]
        for reader in readers
    }
    return roots.pop() if len(roots) == 1 else None
