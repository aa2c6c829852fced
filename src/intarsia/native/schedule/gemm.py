"""Products of matrices: register tiles, panels of the right matrix, what follows at the write-back of a tile.

for panels and blocks of rows, parallel
  the panel of the right matrix, unless it is a constant that was laid out before
  for tiles of the block
    for k
      for rows of the tile, unrolled
        for columns of the tile, vectorised
          tile += left * right
    for rows, for columns: result = what follows(tile)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.gemm_form import GemmForm, gemm_form
from intarsia.native.schedule.gemm_tile import GemmTile, gemm_tile
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.lane_reduction import with_lane_reductions
from intarsia.native.schedule.row_schedule import with_rows
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp, Operation

_LEAST_WORK = 64
"""Products below which tiles are not worth it."""
_REUSED = 4
"""Over how many tiles a panel must be used for a copy of it to pay."""
_CHUNKS = 4
"""How many pieces of work each thread gets."""
_BLOCK_BYTES = 1048576
"""How much of the left matrix is used again for each panel: about what a second-level cache holds."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of one product.

    Attributes:
        form: The product.
        tile: What stays in registers.
        copies: Whether panels of the right matrix are copied where they are used.
    """

    form: GemmForm
    tile: GemmTile
    copies: bool


def gemm_state(task: ScheduleTask) -> LoopState | None:
    """The state of a DAG with products of matrices; what is not part of one is computed by rows."""
    plans = [plan for op in task.dag.ops if (plan := _plan(op, task)) is not None]
    if not plans:
        return None
    products = frozenset(plan.form.op.name for plan in plans)
    kept = {plan.form.right.name for plan in plans if plan.copies}
    state = with_inlined(task.dag.init_state, kept)
    state = with_lane_reductions(state, task, products | kept)
    done = {stage.op.name for stage in state.stages if stage.compute_at is ComputeAt.INLINED}
    for plan in plans:
        state, names = _with_product(state, plan, task, frozenset(done))
        done |= names
    return with_rows(state, task, frozenset(done))


def _plan(op: Operation, task: ScheduleTask) -> _Plan | None:
    form = gemm_form(op, task.analyzer)
    if form is None or work_of([form.op]) < _LEAST_WORK:
        return None
    if not (form.right_is_packed or form.right_runs_along_columns):
        return None
    tile = gemm_tile(form.rows, form.columns, task.lanes(form.op), task.accumulators)
    return _Plan(form, tile, not form.right_is_packed and form.rows >= _REUSED * tile.rows)


def _with_product(
    state: LoopState, plan: _Plan, task: ScheduleTask, others: frozenset[str]
) -> tuple[LoopState, set[str]]:
    """With the loops of a product and what is computed with it, and the names of these stages.

    Args:
        state: Where the product has its declared loops.
        plan: Of the product.
        task: The machine.
        others: Names of stages that have their loops.
    """
    form = plan.form
    product = result = form.op.name
    sink = _sink(state, form.op, task)
    if sink is form.op:
        state = state.cache_write(result, "tile")
        product = state.stages[state.stage_id(result) - 1].op.name
    else:
        result = sink.name
    done = {product, result}
    state = _with_result_loops(state, result, plan, task)
    if plan.copies:
        state, panel = _with_panel(state, product, result, form, others)
        done.add(panel)
    return _with_product_loops(state, product, result, form), done


def _sink(state: LoopState, op: ComputeOp, task: ScheduleTask) -> ComputeOp:
    """What the elements of a product end in, at the same places; the product itself if there is nothing."""
    found = op
    while not task.dag.is_output(found) and len(task.dag.readers[found]) == 1:
        (reader,) = task.dag.readers[found]
        if not (isinstance(reader, ComputeOp) and reader.combiner is None):
            break
        if not task.analyzer.elementwise_match(found, reader):
            break
        found = reader
        if state[found.name].compute_at is not ComputeAt.INLINED:
            return found
    return op


def _with_result_loops(state: LoopState, name: str, plan: _Plan, task: ScheduleTask) -> LoopState:
    """Panels and blocks of rows as one outermost loop, then tiles, then the elements of a tile."""
    form, tile = plan.form, plan.tile
    axes = [loop.name for loop in state[name].iters]
    column, row = axes[form.column], None if form.row is None else axes[form.row]
    outer = [axis for axis in axes if axis not in (column, row)]
    state = state.split(name, column, [tile.columns])
    order, inner = [*outer, f"{column}.0"], [f"{column}.1"]
    if row is not None:
        state = state.split(name, row, [_block(plan, task), tile.rows])
        order = [*outer, f"{row}.0", f"{column}.0", f"{row}.1"]
        inner = [f"{row}.2", *inner]
        state = state.unroll(name, f"{row}.2")
    state = state.reorder(name, [*order, *inner]).vectorize(name, f"{column}.1")
    if not task.is_parallel(work_of([form.op])):
        return state
    return _with_threads(state, name, order if row is None else order[:-1], task)


def _with_threads(state: LoopState, name: str, loops: list[str], task: ScheduleTask) -> LoopState:
    """One of the outer loops parallel, outermost, if one is long enough; else all of them as one loop.

    A loop on its own needs no division to tell where an iteration is.
    """
    wanted = task.threads * _CHUNKS
    extents = {loop.name: loop.extent or 1 for loop in state[name].iters}
    chosen = next((loop for loop in loops if extents[loop] >= wanted), None)
    if chosen is None and prod(extents[loop] for loop in loops) > 1:
        return (
            state.fuse(name, range(len(loops))).parallel(name, 0)
            if len(loops) > 1
            else state.parallel(name, 0)
        )
    if chosen is None:
        return state
    rest = [loop.name for loop in state[name].iters if loop.name != chosen]
    return state.reorder(name, [chosen, *rest]).parallel(name, chosen)


def _block(plan: _Plan, task: ScheduleTask) -> int:
    """How many tiles of rows use a panel before the next panel is taken; all, if panels are copied."""
    form, tile = plan.form, plan.tile
    tiles = -(-form.rows // tile.rows)
    size = form.op.dtypes[0].numpy.itemsize
    block = max(1, min(tiles, _BLOCK_BYTES // (tile.rows * form.depth * size)))
    block = tiles if plan.copies else block
    panels = prod(form.op.shape) // max(1, form.rows * form.columns) * -(-form.columns // tile.columns)
    if task.threads > 1 and panels < task.threads * _CHUNKS:
        block = min(block, max(1, tiles * panels // (task.threads * _CHUNKS)))
    return -(-tiles // -(-tiles // block))


def _with_panel(
    state: LoopState, product: str, result: str, form: GemmForm, others: frozenset[str]
) -> tuple[LoopState, str]:
    """A copy of what the tiles of an outermost iteration read of the right matrix, and its name.

    What is computed element by element for this product only is computed there, instead of a copy of it.
    """
    name = form.right.name
    right = state[name].op
    is_own = isinstance(right, ComputeOp) and right.combiner is None and name not in others
    is_free = is_own and state.current_dag.readers[right] == (state[product].op,)
    if not is_free or state.current_dag.is_output(right):
        state = state.cache_read(name, "panel", [product])
        name = state.stages[state.stage_id(name) + 1].op.name
    return state.compute_at(name, result, _tile_loop(state, result, form) - 1), name


def _with_product_loops(state: LoopState, product: str, result: str, form: GemmForm) -> LoopState:
    """The sum over a tile, inside the loop over tiles: the steps outside, the elements inside."""
    loops = [loop.name for loop in state[product].iters]
    rank = len(form.op.axes)
    column, row = loops[form.column], None if form.row is None else loops[form.row]
    outer = [loop for loop in loops[:rank] if loop not in (column, row)]
    inner = [column] if row is None else [row, column]
    state = state.reorder(product, [*outer, *loops[rank:], *inner]).vectorize(product, column)
    if row is not None:
        state = state.unroll(product, row)
    return state.compute_at(product, result, _tile_loop(state, result, form))


def _tile_loop(state: LoopState, result: str, form: GemmForm) -> int:
    """The loop over tiles: those inside are the elements of one."""
    count = 1 if form.row is None else 2
    return len(state[result].iters) - count - 1
