"""Multi-level tiling of the loops of a stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from intarsia.autoschedule.sketch.stage_facts import listed_axes
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.te import IterKind
from intarsia.native.te.op_attrs import NO_SPLIT_AT_INNER


@dataclass(frozen=True, slots=True)
class Tiling:
    """A state after a stage was tiled.

    Attributes:
        state: The state.
        split_step_ids: Number of the split step of each split spatial axis, by the number of the axis.
    """

    state: LoopState
    split_step_ids: Mapping[int, int]


def tile_loops(state: LoopState, stage_id: int, structure: str) -> Tiling:
    """Split every loop of a stage, and order the parts by tile levels; lengths stay open.

    "SSRSRS" of the loops (i, j, k) is i0 j0 | i1 j1 | k0 | i2 j2 | k1 | i3 j3.
    Axes listed as `auto_scheduler_no_split_at_inner` are not split, and come first in the innermost level.

    Args:
        state: The state.
        stage_id: Number of a stage with loops as declared.
        structure: Tile levels, outermost first: S for spatial loops, R for reduction loops.
    """
    whole = listed_axes(state.stages[stage_id], NO_SPLIT_AT_INNER)
    levels: dict[IterKind, list[list[str]]] = {
        IterKind.SPATIAL: [[] for _ in range(structure.count("S"))],
        IterKind.REDUCTION: [[] for _ in range(structure.count("R"))],
    }
    kept: dict[IterKind, list[str]] = {kind: [] for kind in levels}
    steps: dict[int, int] = {}
    for axis, loop in enumerate(state.stages[stage_id].iters):
        of_kind = levels[loop.kind]
        if loop.name in whole or not of_kind:
            kept[loop.kind].append(loop.name)
        elif len(of_kind) == 1:
            of_kind[0].append(loop.name)
        else:
            if loop.kind is IterKind.SPATIAL:
                steps[axis] = len(state.transform_steps)
            state = state.split(stage_id, loop.name, [None] * (len(of_kind) - 1))
            for part, level in enumerate(of_kind):
                level.append(f"{loop.name}.{part}")
    return Tiling(state.reorder(stage_id, _order(structure, levels, kept)), steps)


def _order(
    structure: str, levels: Mapping[IterKind, list[list[str]]], kept: Mapping[IterKind, list[str]]
) -> list[str]:
    kinds = [IterKind.SPATIAL if level == "S" else IterKind.REDUCTION for level in structure]
    order: list[str] = []
    remaining = {kind: list(names) for kind, names in levels.items()}
    for kind in kinds:
        level = remaining[kind].pop(0)
        order += [*kept[kind], *level] if not remaining[kind] else level
    return order + [name for kind, names in kept.items() if not levels[kind] for name in names]


def follow_tiling(
    state: LoopState, stage_id: int, split_step_ids: Mapping[int, int], count: int
) -> LoopState:
    """Split the loops of a stage as those of another stage were, and order the parts by levels.

    Loops that were not split there stay whole, in the innermost level. An unrolled or vectorised loop stays
    so in its innermost part, a parallel loop in its outermost part.

    Args:
        state: The state.
        stage_id: Number of a stage with spatial loops only, one for each axis of the other stage.
        split_step_ids: Split steps of the other stage, as in `Tiling`.
        count: Number of lengths that are taken from each split.
    """
    levels: list[list[str]] = [[] for _ in range(count + 1)]
    annotations: list[tuple[str, IteratorAnnotation]] = []
    for axis, loop in enumerate(state.stages[stage_id].iters):
        if axis not in split_step_ids:
            levels[-1].append(loop.name)
            continue
        state = state.follow_split(stage_id, loop.name, split_step_ids[axis], count)
        for part, level in enumerate(levels):
            level.append(f"{loop.name}.{part}")
        if loop.annotation is not IteratorAnnotation.NONE:
            part = 0 if loop.annotation is IteratorAnnotation.PARALLEL else count
            annotations.append((f"{loop.name}.{part}", loop.annotation))
    for name, annotation in annotations:
        state = state.annotate(stage_id, name, annotation)
    return state.reorder(stage_id, [name for level in levels for name in level])
