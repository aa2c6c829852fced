"""Histories for DAGs with one more operation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from intarsia.native.loop_state.steps import CacheReadStep, ComputeAtStep, TransformStep


def shifted_steps(steps: Iterable[TransformStep], place: int) -> tuple[tuple[TransformStep, ...], int]:
    """The steps after an operation was put in at `place` of the DAG they begin with.

    Returns:
        The steps, and the number of the new operation's stage after them.
    """
    found = []
    for step in steps:
        moved = _moved(step, place)
        found.append(moved)
        if moved.adds_stage:
            made = moved.stage_id + 1 if isinstance(moved, CacheReadStep) else moved.stage_id
            place += made <= place
    return tuple(found), place


def _moved(step: TransformStep, place: int) -> TransformStep:
    def number(stage_id: int) -> int:
        return stage_id + 1 if stage_id >= place else stage_id

    moved = replace(step, stage_id=number(step.stage_id))
    match moved:
        case ComputeAtStep():
            return replace(moved, target_stage_id=number(moved.target_stage_id))
        case CacheReadStep():
            return replace(moved, reader_stage_ids=tuple(map(number, moved.reader_stage_ids)))
        case _:
            return moved
