"""Matrix products for a few rows each, with tiles of one width, so that all read one packed matrix."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.gemm_form import GemmForm, gemm_form
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.gemm import (
    GemmPlan,
    cache_sets_of_rows,
    gemm_plans,
    right_is_far,
    state_of_plans,
)
from intarsia.native.schedule.gemm_block import PIECES, GemmBlock
from intarsia.native.schedule.gemm_tile import GemmTile, gemm_tile
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.schedule.scheduled import ScheduledDag, with_state
from intarsia.native.sizes.row_dag import with_rows

_USUAL_ROWS: Final = 64
"""Number of rows for which the tile is chosen: with more of them it stays the same."""
_MOST_ROWS: Final = 8
"""Maximum number of rows of a tile: each remainder has its own code. With 8 x 3 vectors AVX-512 is at its
peak."""
_MOST_ROWS_FAR: Final = 14
"""The same where the matrix comes from beyond the second-level cache.

Only the first tile of a panel waits for it, so that 9 rows as 5 and 4 by 3 vectors took 1.25 of the time of 9
by 2 (768x3072, one thread of Zen 4). Where 14 rows are in too few sets of the first-level cache, this is for
a single tile only: 128 rows of 2048 take 0.78 of the time in tiles of 8 rows.
"""


@dataclass(frozen=True, slots=True)
class RowTiles:
    """Schedules of a computation for a few rows.

    Attributes:
        schedules: Schedules for 1, 2, 3 ... rows. Their constants are packed alike.
        height: Number of rows of a whole tile, at most as many as there are schedules.
        threads: Number of threads that share the columns; 1 if the rows are to be shared.
    """

    schedules: tuple[ScheduledDag, ...]
    height: int
    threads: int


def row_tiles(dag: ComputeDAG, carrying: Collection[str], isa: Isa, threads: int) -> RowTiles | None:
    """Return the schedules of a matrix product with its epilogue for a few rows.

    None if it does not compute each row by itself, is no product by packed matrices, or if its matrices would
    be packed differently for different numbers of rows.

    Args:
        dag: Computation for some number of rows.
        carrying: Names of the placeholders whose first axis is the rows.
        isa: Instruction set of the machine, with its caches.
        threads: Number of threads.
    """
    usual = with_rows(dag, carrying, _USUAL_ROWS)
    if usual is None:
        return None
    task = ScheduleTask(usual, isa, threads)
    plans = gemm_plans(task)
    if not plans or not all(plan.form.right_is_packed and plan.form.row == 0 for plan in plans):
        return None
    tiles = {plan.form.op.name: _tile(plan, task, threads if len(plans) == 1 else 1) for plan in plans}
    most = min(tile.rows for tile in tiles.values())
    height = min([most, *(_height(plan, task) for plan in plans if most > _MOST_ROWS)])
    across = min(_across(plan.form, tiles[plan.form.op.name]) for plan in plans)
    pays_off = task.is_parallel(work_of(usual.ops) * height // _USUAL_ROWS)  # for one tile of rows
    shared = threads if pays_off and across >= threads * PIECES and len(plans) == 1 else 1
    schedules: list[ScheduledDag] = []
    for rows in range(1, most + 1):
        few = with_rows(dag, carrying, rows)
        assert few is not None, "it has rows of the usual number"
        schedule = _scheduled(few, plans, tiles, ScheduleTask(few, isa, shared))
        if schedule is None or (schedules and schedule.packings != schedules[0].packings):
            return None
        schedules.append(schedule)
    return RowTiles(tuple(schedules), height, shared)


def _tile(plan: GemmPlan, task: ScheduleTask, shared: int) -> GemmTile:
    """Return the tile of many rows.

    Where threads share the columns, it takes the least time for the share of one: 512 columns for 2 threads
    are 8 panels of 64, not 11 of 48.
    """
    form, lanes = plan.form, task.lanes(plan.form.op)
    share = -(-form.columns // (lanes * shared)) * lanes
    tile = _tile_of_columns(plan, task, min(share, form.columns))
    if shared == 1 or _across(form, tile) >= shared * PIECES:
        return tile
    return _tile_of_columns(plan, task, form.columns)


def _tile_of_columns(plan: GemmPlan, task: ScheduleTask, columns: int) -> GemmTile:
    sizes = plan.form.rows, columns, task.lanes(plan.form.op), task.accumulators_of(plan.form.op)
    is_far = right_is_far(plan.form, task, plan.threads)
    most_rows = _MOST_ROWS_FAR if is_far else _MOST_ROWS
    return gemm_tile(*sizes, is_far=is_far, most_rows=most_rows, costs=task.costs)


def _across(form: GemmForm, tile: GemmTile) -> int:
    """Return the number of panels of the right matrix."""
    return -(-form.columns // tile.columns)


def _height(plan: GemmPlan, task: ScheduleTask) -> int:
    """Return the number of rows of a tile of many rows, of which a set of the cache has to keep each line."""
    rows_of_set = -(-_MOST_ROWS_FAR // cache_sets_of_rows(plan.form, task))
    return _MOST_ROWS if rows_of_set > task.isa.machine.first_ways else _MOST_ROWS_FAR


def _scheduled(
    dag: ComputeDAG, usual: tuple[GemmPlan, ...], tiles: dict[str, GemmTile], task: ScheduleTask
) -> ScheduledDag | None:
    forms = {op.name: gemm_form(op, task.analyzer) for op in dag.ops}
    plans = []
    for plan in usual:
        form = forms[plan.form.op.name]
        if form is None or not form.right_is_packed:
            return None
        plans.append(_plan(plan, form, tiles[plan.form.op.name], task.threads))
    return with_state(dag, state_of_plans(task, plans))


def _plan(usual: GemmPlan, form: GemmForm, tile: GemmTile, threads: int) -> GemmPlan:
    # Threads share single panels: the runtime makes even pieces of them, where blocks of 196 of 1571 panels
    # were 9 pieces for 2 threads.
    width = _across(form, tile) if threads == 1 else 1
    return replace(
        usual,
        form=form,
        tile=GemmTile(form.rows, tile.columns),
        block=GemmBlock(1, width, form.depth),
        threads=threads,
        copies=False,
        is_by_rows=False,
        is_along_sum=False,
    )
