"""Histories for a DAG with one more operation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from intarsia.native.loop_state.steps import CacheReadStep, ComputeAtStep, TransformStep


def shifted_steps(steps: Iterable[TransformStep], op_id: int) -> tuple[tuple[TransformStep, ...], int]:
    """Return the steps after an operation was inserted into the initial DAG as number `op_id`.

    Returns:
        The steps, and the number of the new operation's stage after them.
    """
    shifted = []
    for step in steps:
        moved = _moved(step, op_id)
        shifted.append(moved)
        if moved.adds_stage:
            new_stage = moved.stage_id + 1 if isinstance(moved, CacheReadStep) else moved.stage_id
            op_id += new_stage <= op_id
    return tuple(shifted), op_id


def _moved(step: TransformStep, op_id: int) -> TransformStep:
    def number(stage_id: int) -> int:
        return stage_id + 1 if stage_id >= op_id else stage_id

    moved = replace(step, stage_id=number(step.stage_id))
    match moved:
        case ComputeAtStep():
            return replace(moved, target_stage_id=number(moved.target_stage_id))
        case CacheReadStep():
            return replace(moved, reader_stage_ids=tuple(map(number, moved.reader_stage_ids)))
        case _:
            return moved
