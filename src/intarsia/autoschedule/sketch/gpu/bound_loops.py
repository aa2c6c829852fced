"""Steps that several rules for GPUs take."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.gpu.schedule_stages import BLOCK_AXIS, THREAD_AXIS
from intarsia.native.loop_state import ComputeAt, LoopState, Stage
from intarsia.native.loop_state.iterator import IteratorAnnotation

VIRTUAL_AXIS = IteratorAnnotation.VTHREAD.keyword


def is_still_whole(stage: Stage) -> bool:
    """Return whether a stage stands alone, and no rule has split or fused its loops."""
    return stage.compute_at is ComputeAt.ROOT and not stage.relations


def with_first_loops_fused(state: LoopState, stage_id: int, first: int, count: int) -> LoopState:
    """Fuse `count` loops of a stage from number `first` on; a single loop stays as it is."""
    return state.fuse(stage_id, range(first, first + count)) if count > 1 else state


def with_loops_bound(state: LoopState, stage_id: int, first: int, count: int, axis: str) -> LoopState:
    """Fuse `count` loops of a stage from number `first` on, and bind the result to an axis."""
    return with_first_loops_fused(state, stage_id, first, count).bind(stage_id, first, axis)


def with_blocks_and_threads(
    state: LoopState, stage_id: int, count: int, *, has_rest: bool = False
) -> LoopState:
    """Fuse the first loops of a stage, and split them into blocks and threads; their number stays open.

    Args:
        state: The state.
        stage_id: Number of the stage.
        count: Number of its loops that are fused.
        has_rest: Whether a loop of each thread remains behind them, whose length stays open as well.
    """
    lengths = [None, None] if has_rest else [None]
    state = with_first_loops_fused(state, stage_id, 0, count).split(stage_id, 0, lengths)
    return state.bind(stage_id, 0, BLOCK_AXIS).bind(stage_id, 1, THREAD_AXIS)


def with_levels_bound(
    state: LoopState, stage_id: int, count: int, axes: Sequence[str] = (BLOCK_AXIS, VIRTUAL_AXIS, THREAD_AXIS)
) -> LoopState:
    """Fuse the loops of each of the outer tile levels of a stage, and bind one after the other.

    Args:
        state: State in which each level has `count` loops, outermost level first.
        stage_id: Number of the stage.
        count: Number of loops of a level.
        axes: Names of the axes that the levels are bound to.
    """
    for level, axis in enumerate(axes):
        state = with_loops_bound(state, stage_id, level, count, axis)
    return state
