"""Loops that a stage may be computed in."""

from __future__ import annotations

from typing import TypeAlias

from intarsia.autoschedule.sketch.stage_facts import is_placed, is_tiled, needs_multi_level_tiling
from intarsia.native.loop_state import ComputeAt, Iterator, IteratorAnnotation, LoopState
from intarsia.native.loop_state.relatives import consumers
from intarsia.native.te import ComputeOp, IterKind

Location: TypeAlias = tuple[int, int]
"""Number of a stage, and number of a loop in it."""


def is_movable(state: LoopState, stage_id: int) -> bool:
    """Whether a stage may be moved: it is not an output, is not inlined, and has no tiles."""
    stage = state.stages[stage_id]
    is_kept = state.current_dag.is_output(stage.op) or not isinstance(stage.op, ComputeOp)
    return (
        is_placed(stage)
        and not is_kept
        and not is_tiled(stage)
        and not needs_multi_level_tiling(state, stage_id)
    )


def compute_locations(state: LoopState, stage_id: int) -> tuple[Location, ...]:
    """Return the loops that a stage may be computed in, outermost first (Ansor, section 4.2).

    These are the loops of its only reader down to its first reduction (the last one if it is tiled) and, if
    that reader is inside another stage, loops around it. Unrolled loops and loops of one iteration are
    excluded.

    Args:
        state: State with the ranges of all loops; a loop without a range counts as longer than 1.
        stage_id: Number of the stage.
    """
    target_id = _reader_or_root(state, stage_id)
    if target_id is None:
        return ()
    locations = _loops_of_reader(state, target_id)
    if state.stages[target_id].compute_at is ComputeAt.ITER:
        locations += _loops_around_reader(state, target_id)
    return tuple(locations)


def _loops_of_reader(state: LoopState, target_id: int) -> list[Location]:
    target, has_reduced, locations = state.stages[target_id], False, list[Location]()
    is_inside = target.compute_at is ComputeAt.ITER
    for loop_id, loop in enumerate(target.iters):
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
        locations.append((target_id, loop_id))
        if (target_id, loop_id) in state.attach_map.attached:
            break
    return locations


def _is_outermost_tile(loop: Iterator) -> bool:
    """Whether a loop is the outermost tile of an axis, which runs once in a stage inside another one."""
    return loop.kind is IterKind.SPATIAL and loop.name.endswith(".0")


def _loops_around_reader(state: LoopState, target_id: int) -> list[Location]:
    around_id, inner = state.attach_map.positions[target_id]
    locations = []
    for loop_id, loop in enumerate(state.stages[around_id].iters[: inner + 1]):
        is_end = loop.kind is IterKind.REDUCTION or loop.annotation is IteratorAnnotation.UNROLL
        if is_end or (around_id, loop_id) in state.attach_map.attached:
            break
        if loop.extent != 1:
            locations.append((around_id, loop_id))
    return locations


def _reader_or_root(state: LoopState, stage_id: int) -> int | None:
    """Return the only reader, or the root stage that contains all readers."""
    readers = consumers(state, stage_id)
    if len(readers) == 1:
        return next(iter(readers))
    roots = {
        reader if state.stages[reader].compute_at is ComputeAt.ROOT else state.attach_map.positions[reader][0]
        for reader in readers
    }
    return roots.pop() if len(roots) == 1 else None
