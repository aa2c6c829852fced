"""Functions that the three kinds of splits share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from intarsia.native.loop_state.iterator import Iterator, Range
from intarsia.native.loop_state.relation import SplitRelation
from intarsia.native.loop_state.steps.lookup import loop_of

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames
    from intarsia.native.loop_state.steps.step import TransformStep

Lengths = Sequence[int | None]
"""Lengths of parts, outermost first; None for a length that is not chosen yet."""


def with_split(
    step: TransformStep, state: LoopPreview, iter_id: int, lengths: Lengths, inner_to_outer: bool
) -> LoopPreview:
    """Return the loops with a loop of the step's stage split into `len(lengths) + 1` without annotations.

    Raises:
        IllegalStepError: There is no such loop, or a length is below 1.
    """
    loop = loop_of(step, state, iter_id)
    if any(length is not None and length < 1 for length in lengths):
        raise state.step_error(step, f"found lengths {list(lengths)}; expected lengths of at least 1")
    stage = state.stages[step.stage_id]
    parts = _parts(loop, lengths, inner_to_outer)
    relation = SplitRelation(
        loop.name, loop.extent, tuple(part.name for part in parts), tuple(lengths), inner_to_outer
    )
    after = state.with_stage(
        step.stage_id,
        iters=(*stage.iters[:iter_id], *parts, *stage.iters[iter_id + 1 :]),
        relations=(*stage.relations, relation),
    )
    moved = state.attach_map.with_loops_moved(
        step.stage_id, lambda loop_id: loop_id + len(lengths) if loop_id >= iter_id else loop_id
    )
    return after.with_fields(attach_map=moved, concrete=state.concrete and None not in lengths)


def _parts(loop: Iterator, lengths: Lengths, inner_to_outer: bool) -> list[Iterator]:
    """Return the new loops.

    Ranges are computed from the side with given lengths to the part with the rest.
    """
    ordered = list(reversed(lengths)) if inner_to_outer else list(lengths)
    rest, ranges = loop.extent, list[Range | None]()
    for length in ordered:
        is_known = length is not None and rest is not None
        ranges.append(Range(0, length) if is_known and length is not None else None)
        rest = -(-rest // length) if rest is not None and length is not None else None
    ranges.append(None if rest is None else Range(0, rest))
    if inner_to_outer:
        ranges.reverse()
    minimum = loop.range.minimum if loop.range is not None else 0
    if ranges[-1] is not None:
        ranges[-1] = replace(ranges[-1], minimum=minimum)
    return [Iterator(f"{loop.name}.{i}", part_range, loop.kind) for i, part_range in enumerate(ranges)]


def product(lengths: Lengths) -> int | None:
    """Return the product of all lengths, or None if one is not chosen."""
    chosen = [length for length in lengths if length is not None]
    return math.prod(chosen) if len(chosen) == len(lengths) else None


def split_lines(
    names: PythonNames, stage_id: int, iter_id: int, lengths: Lengths, inner_to_outer: bool
) -> list[str]:
    """Return a call of `split` for each length, since TVM's schedules split in two only."""
    stage, loop = names.stage(stage_id), names.loop(stage_id, iter_id)
    short, count = names.short(stage_id, iter_id), len(lengths)
    if inner_to_outer:
        tails = ["_o" * count, *("_o" * (count - part) + "_i" for part in range(1, count + 1))]
    else:
        tails = [*("_i" * part + "_o" for part in range(count)), "_i" * count]
    parts = names.replace(stage_id, iter_id, 1, [f"{short}{tail}" for tail in tails])
    lines = []
    for i in range(count):
        outer = count - 1 - i if inner_to_outer else i
        argument = f"{'factor' if inner_to_outer else 'nparts'}={lengths[outer]}"
        lines.append(f"{parts[outer]}, {parts[outer + 1]} = s[{stage}].split({loop}, {argument})")
        loop = parts[outer if inner_to_outer else outer + 1]
    return lines
