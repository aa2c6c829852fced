"""Schedule family of matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from intarsia.native.dag import loop_name
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.loop_state.stage import axes_of
from intarsia.native.schedule.gemm import GemmPlan, gemm_plans, may_run_along_sum, state_of_plans
from intarsia.native.schedule.gemm_block import GemmBlock
from intarsia.native.schedule.gemm_tile import GemmTile
from intarsia.native.schedule.schedule_family import (
    Choice,
    Knob,
    ScheduleFamily,
    divisors_up_to,
    loop_extents,
    stands_outside,
)
from intarsia.native.schedule.schedule_task import ScheduleTask

_MOST_VECTORS: Final = 8
_MOST_STEPS: Final = 4
_AS_IT_LIES, _COPIED, _ALONG_SUM = range(3)
"""Modes of reading the right matrix."""
_PIECES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
"""Numbers of pieces into which tiles and sums may be cut."""


class GemmChoice(NamedTuple):
    """Choice for one product.

    Attributes:
        rows: Number of rows of a tile.
        columns: Number of columns of a tile; along the sum, `lanes` times as many.
        down: Number of blocks from top to bottom.
        across: Number of blocks from left to right.
        deep: Number of pieces into which sums are cut.
        reads: Mode of reading the right matrix: in place, from packed panels, or along the sum.
        is_by_rows: Field of the same name in `GemmPlan`.
        steps: Field of the same name in `GemmPlan`; 1 along the sum, where no sum is cut.
    """

    rows: int
    columns: int
    down: int
    across: int
    deep: int
    reads: int
    is_by_rows: int
    steps: int


def gemm_family(task: ScheduleTask) -> ScheduleFamily | None:
    """Return the family of `gemm_state`: tiles, blocks, order, packing, K-unroll."""
    plans = gemm_plans(task)
    if not plans:
        return None
    products = [_Product(plan, task) for plan in plans]
    count = len(GemmChoice._fields)

    def parts(choice: Choice) -> list[GemmChoice]:
        return [GemmChoice(*choice[i * count : (i + 1) * count]) for i in range(len(products))]

    def make(choice: Choice) -> LoopState:
        pairs = zip(products, parts(choice), strict=True)
        return state_of_plans(task, [product.plan_of(part) for product, part in pairs])

    def fits(choice: Choice) -> bool:
        return all(product.fits(part) for product, part in zip(products, parts(choice), strict=True))

    def canonical(choice: Choice) -> Choice:
        pairs = zip(products, parts(choice), strict=True)
        return tuple(value for product, part in pairs for value in product.canonical(part))

    def read(state: LoopState) -> Choice | None:
        choices = [product.read(state) for product in products]
        return None if None in choices else tuple(value for part in choices for value in part or ())

    knobs = tuple(knob for product in products for knob in product.knobs(named=len(products) > 1))
    default = tuple(value for product in products for value in product.default)
    return ScheduleFamily(knobs, default, make, fits, read, canonical)


class _Product:
    """The part of a family for one product.

    Attributes:
        plan: Default plan.
        form: Product of matrices.
        lanes: Number of elements of a vector.
        default: Default plan as a choice.
    """

    def __init__(self, plan: GemmPlan, task: ScheduleTask) -> None:
        self.plan, self.form = plan, plan.form
        self.lanes = task.lanes(self.form.op)
        self._registers, self._independent_sums = task.isa.vector_registers, task.isa.independent_sums
        self._may_run_along_sum = may_run_along_sum(plan.form, task)
        self.default = self._choice_of(plan)

    def knobs(self, *, named: bool) -> list[Knob]:
        """Return the knobs; with `named`, their names begin with the name of the operation."""
        form, lanes = self.form, self.lanes
        most = form.columns if self._may_run_along_sum else -(-form.columns // lanes)
        widths = [count * lanes for count in range(1, min(_MOST_VECTORS, most) + 1)]
        if not self._may_run_along_sum:
            widths = [min(width, form.columns) for width in widths]
        reads = [_ALONG_SUM] if self._may_run_along_sum else []
        if form.right_runs_along_columns and not form.right_is_packed and form.row is not None:
            reads += [_AS_IT_LIES, _COPIED]
        values = (
            range(1, min(form.rows, self._registers) + 1),
            [*widths, *(min(width, form.columns) for width in widths)],
            [count for count in _PIECES if count <= form.rows],
            [count for count in _PIECES if count <= most],
            [count for count in _PIECES if count * lanes <= form.depth],
            reads,
            (0, 1) if form.row is not None else (),
            divisors_up_to(form.depth, _MOST_STEPS),
        )
        start = f"{form.op.name}." if named else ""
        fields = zip(GemmChoice._fields, values, self.default, strict=True)
        return [Knob.of(start + name, of_knob, default) for name, of_knob, default in fields]

    def fits(self, choice: GemmChoice) -> bool:
        """Return whether sums and the vectors of a step fit into registers, and sums are enough."""
        if choice == self.default:
            return True
        plan = self.plan_of(choice)
        rows, vectors = plan.tile.rows, self._vectors(plan)
        least = min(self._independent_sums, self.plan.tile.rows * self._vectors(self.plan))
        is_small = rows == 1 or rows * vectors + vectors <= self._registers
        return least <= rows * vectors and is_small and plan.block.depth % plan.steps == 0

    def _vectors(self, plan: GemmPlan) -> int:
        """Return the number of vectors in a row of a tile."""
        return plan.tile.columns if plan.is_along_sum else -(-plan.tile.columns // self.lanes)

    def canonical(self, choice: GemmChoice) -> GemmChoice:
        """Return the choice with actual numbers of pieces, and without an order of unnested loops."""
        plan = self.plan_of(choice)
        has_order = not plan.copies and not plan.is_cut
        return self._choice_of(replace(plan, is_by_rows=has_order and plan.is_by_rows))

    def plan_of(self, choice: GemmChoice) -> GemmPlan:
        """Return the plan of a choice."""
        form, is_along_sum = self.form, choice.reads == _ALONG_SUM
        columns = -(-choice.columns // self.lanes) if is_along_sum else choice.columns
        tile = GemmTile(choice.rows, min(columns, form.columns))
        down, across = -(-form.rows // tile.rows), -(-form.columns // tile.columns)
        depth = form.depth if is_along_sum else -(-form.depth // choice.deep)
        block = GemmBlock(-(-down // choice.down), -(-across // choice.across), depth)
        return replace(
            self.plan,
            tile=tile,
            block=block,
            copies=choice.reads == _COPIED,
            is_by_rows=bool(choice.is_by_rows),
            steps=1 if is_along_sum else choice.steps,
            is_along_sum=is_along_sum,
        )

    def _choice_of(self, plan: GemmPlan) -> GemmChoice:
        form, tile, block = self.form, plan.tile, plan.block
        down, across = -(-form.rows // tile.rows), -(-form.columns // tile.columns)
        pieces = -(-down // block.rows), -(-across // block.columns), -(-form.depth // block.depth)
        columns = tile.columns * (self.lanes if plan.is_along_sum else 1)
        reads = _ALONG_SUM if plan.is_along_sum else _COPIED if plan.copies else _AS_IT_LIES
        return GemmChoice(tile.rows, columns, *pieces, reads, int(plan.is_by_rows), plan.steps)

    def read(self, state: LoopState) -> GemmChoice | None:
        """Read the choice from the loops of a state; None if they are of another form."""
        form, right = self.form, self.form.right.name
        names = {stage.op.name for stage in state.stages}
        tile_name = f"{form.op.name}.tile"
        product = state.stage_id(tile_name if tile_name in names else form.op.name)
        if product not in state.attach_map.positions:
            return None
        result, _ = state.attach_map.positions[product]
        loops, axes = loop_extents(state, result), _axis_names(state, result)
        if len(axes) != len(form.op.axes):
            return None
        column, row = axes[form.column], "" if form.row is None else axes[form.row]
        if f"{column}.2" not in loops:
            return None
        plan = replace(
            self.plan,
            tile=GemmTile(loops.get(f"{row}.2", 1), loops[f"{column}.2"]),
            block=GemmBlock(loops.get(f"{row}.1", 1), loops.get(f"{column}.1", 1), form.depth),
            copies=f"{right}.panel" in names or state[right].compute_at is ComputeAt.ITER,
            is_by_rows=form.row is not None and stands_outside(loops, f"{row}.1", f"{column}.1"),
            is_along_sum=f"{state.stages[product].op.name}.rf" in names,
        )
        return self._choice_of(
            self._with_depth(plan, loop_extents(state, product), _axis_names(state, product))
        )

    def _with_depth(self, plan: GemmPlan, sums: Mapping[str, int], axes: Sequence[str]) -> GemmPlan:
        """Return the plan with the depth and unroll factor that the loops of the sum show."""
        k = axes[-1]
        if f"{axes[self.form.column]}.0" not in sums:
            return replace(plan, steps=sums.get(f"{k}.1", 1))
        steps = sums.get(f"{k}.1.1", 1)
        depth = sums.get(f"{k}.1") or sums.get(f"{k}.1.0", 1) * steps
        return replace(plan, block=replace(plan.block, depth=depth), steps=steps)


def _axis_names(state: LoopState, stage_id: int) -> list[str]:
    """Return the original names of a stage's loops."""
    return [loop_name(axis.name) for axis in axes_of(state.stages[stage_id].op)]
