"""The schedules of products of matrices that a search tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from intarsia.native.dag import loop_name
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.loop_state.stage import axes_of
from intarsia.native.schedule.gemm import GemmPlan, gemm_plans, state_of_plans
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
_LEAST_SUMS: Final = 8
"""Fewer sums in registers wait for each other, unless the rule has no more."""
_PIECES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
"""Into how many pieces tiles, and sums, are cut."""


class GemmChoice(NamedTuple):
    """What is decided of one product.

    Attributes:
        rows: Of a tile.
        columns: Of a tile.
        down: Into how many blocks the tiles are cut from top to bottom.
        across: Into how many from left to right.
        deep: Into how many pieces sums are cut.
        copies: Whether panels of the right matrix are copied where they are used.
        is_by_rows: As in `GemmPlan`.
        steps: As in `GemmPlan`.
    """

    rows: int
    columns: int
    down: int
    across: int
    deep: int
    copies: int
    is_by_rows: int
    steps: int


def gemm_family(task: ScheduleTask) -> ScheduleFamily | None:
    """All schedules of `gemm_state` that may be good: tiles, blocks, order, copies, steps at once."""
    plans = gemm_plans(task)
    if not plans:
        return None
    products = [_Product(plan, task) for plan in plans]
    count = len(GemmChoice._fields)

    def parts(choice: Choice) -> list[GemmChoice]:
        return [GemmChoice(*choice[place * count : (place + 1) * count]) for place in range(len(products))]

    def make(choice: Choice) -> LoopState:
        pairs = zip(products, parts(choice), strict=True)
        return state_of_plans(task, [product.plan_of(part) for product, part in pairs])

    def fits(choice: Choice) -> bool:
        return all(product.fits(part) for product, part in zip(products, parts(choice), strict=True))

    def settled(choice: Choice) -> Choice:
        pairs = zip(products, parts(choice), strict=True)
        return tuple(value for product, part in pairs for value in product.settled(part))

    def read(state: LoopState) -> Choice | None:
        found = [product.read(state) for product in products]
        return None if None in found else tuple(value for part in found for value in part or ())

    knobs = tuple(knob for product in products for knob in product.knobs(named=len(products) > 1))
    default = tuple(value for product in products for value in product.default)
    return ScheduleFamily(knobs, default, make, fits, read, settled)


class _Product:
    """The part of a family that is about one product.

    Attributes:
        plan: What the rule decides.
        form: The product.
        lanes: Elements of a vector.
        default: What the rule decides, as a choice.
    """

    def __init__(self, plan: GemmPlan, task: ScheduleTask) -> None:
        self.plan, self.form = plan, plan.form
        self.lanes = task.lanes(self.form.op)
        self._registers = task.isa.vector_registers
        self.default = self._choice_of(plan)

    def knobs(self, *, named: bool) -> list[Knob]:
        """The knobs; their names begin with that of the operation if asked for."""
        form, lanes = self.form, self.lanes
        vectors = range(1, min(_MOST_VECTORS, -(-form.columns // lanes)) + 1)
        may_copy = not form.right_is_packed and form.row is not None
        values = (
            range(1, min(form.rows, self._registers) + 1),
            [min(count * lanes, form.columns) for count in vectors],
            [count for count in _PIECES if count <= form.rows],
            [count for count in _PIECES if count <= -(-form.columns // lanes)],
            [count for count in _PIECES if count * lanes <= form.depth],
            (0, 1) if may_copy else (),
            (0, 1) if form.row is not None else (),
            divisors_up_to(form.depth, _MOST_STEPS),
        )
        start = f"{form.op.name}." if named else ""
        each = zip(GemmChoice._fields, values, self.default, strict=True)
        return [Knob.of(start + name, of_knob, default) for name, of_knob, default in each]

    def fits(self, choice: GemmChoice) -> bool:
        """Sums and a step's vectors are in registers, and there are enough sums."""
        if choice == self.default:
            return True
        vectors = -(-choice.columns // self.lanes)
        sums = choice.rows * vectors
        least = min(_LEAST_SUMS, self.default.rows * -(-self.default.columns // self.lanes))
        is_small = choice.rows == 1 or sums + vectors <= self._registers
        return least <= sums and is_small and self.plan_of(choice).block.depth % choice.steps == 0

    def settled(self, choice: GemmChoice) -> GemmChoice:
        """As many pieces as there are really; only loops that stand in each other have an order."""
        has_order = not choice.copies and choice.deep == 1
        return self._choice_of(self.plan_of(choice))._replace(is_by_rows=int(has_order and choice.is_by_rows))

    def plan_of(self, choice: GemmChoice) -> GemmPlan:
        """The plan of a choice."""
        form = self.form
        tile = GemmTile(choice.rows, choice.columns)
        down, across = -(-form.rows // tile.rows), -(-form.columns // tile.columns)
        sizes = -(-down // choice.down), -(-across // choice.across), -(-form.depth // choice.deep)
        return replace(
            self.plan,
            tile=tile,
            block=GemmBlock(*sizes),
            copies=bool(choice.copies),
            is_by_rows=bool(choice.is_by_rows),
            steps=choice.steps,
        )

    def _choice_of(self, plan: GemmPlan) -> GemmChoice:
        form, tile, block = self.form, plan.tile, plan.block
        down, across = -(-form.rows // tile.rows), -(-form.columns // tile.columns)
        pieces = -(-down // block.rows), -(-across // block.columns), -(-form.depth // block.depth)
        return GemmChoice(
            tile.rows, tile.columns, *pieces, int(plan.copies), int(plan.is_by_rows), plan.steps
        )

    def read(self, state: LoopState) -> GemmChoice | None:
        """What the loops of a state tell."""
        form, right = self.form, self.form.right.name
        names = {stage.op.name for stage in state.stages}
        tile_name = f"{form.op.name}.tile"
        product = state.stage_id(tile_name if tile_name in names else form.op.name)
        if product not in state.attach_map.places:
            return None
        result, _ = state.attach_map.places[product]
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
        )
        return self._choice_of(
            self._with_depth(plan, loop_extents(state, product), _axis_names(state, product))
        )

    def _with_depth(self, plan: GemmPlan, sums: Mapping[str, int], axes: Sequence[str]) -> GemmPlan:
        """With how sums are cut, and how many of their steps are written one after another."""
        k = axes[-1]
        if f"{axes[self.form.column]}.0" not in sums:
            return replace(plan, steps=sums.get(f"{k}.1", 1))
        steps = sums.get(f"{k}.1.1", 1)
        depth = sums.get(f"{k}.1") or sums.get(f"{k}.1.0", 1) * steps
        return replace(plan, block=replace(plan.block, depth=depth), steps=steps)


def _axis_names(state: LoopState, stage_id: int) -> list[str]:
    """The names that the loops of a stage had at first."""
    return [loop_name(axis.name) for axis in axes_of(state.stages[stage_id].op)]
