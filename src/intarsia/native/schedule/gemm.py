"""Schedule of matrix products: register tiles, packed panels of the right matrix, fused epilogues.

for blocks of tiles, parallel
  for panels of the block
    the panel of the right matrix, unless it is a constant that was laid out before
    for tiles of the panel
      for k
        for rows of the tile, unrolled
          for columns of the tile, vectorised
            tile += left * right
      for rows, for columns: result = what follows(tile)

If neither rows nor a panel stay in the second-level cache, sums are cut into pieces (k-blocking): the block
is
computed in scratch memory with pieces outermost, and the epilogue runs when it is complete. If a variable
right
matrix is transposed and used too rarely for packing to pay off, vectors run along the sums: see `gemm_lanes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from intarsia.native.dag.along_sum import pays_along_sum
from intarsia.native.dag.gemm_form import GemmForm, MatrixPacking, gemm_form
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.gemm_block import PIECES, GemmBlock, gemm_block
from intarsia.native.schedule.gemm_lanes import lane_parts, with_lane_loops
from intarsia.native.schedule.gemm_tile import MANY_ROWS, GemmTile, gemm_tile
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.lane_reduction import with_lane_reductions
from intarsia.native.schedule.row_schedule import with_rows
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp, Operation

_LEAST_WORK = 64
"""Number of multiplications from which tiles pay off."""
_REUSED = 4
"""Number of tiles that must use a panel for its packing to pay off: copies and reads get faster together."""
_MOST_ROWS_UNPACKED = 32
"""Maximum number of rows of a right matrix that is read in place for each row of tiles: more rows that are
far apart do not stay in the first-level cache together."""
_LEAST_VECTORS = 2
"""Minimum number of vectors of a sum: of fewer, the horizontal sum takes longer than the products."""
_LEAST_VECTORS_OF_ROW = 4
"""The same where rows can be summed one by one: with 2 vectors that takes 0.75 of the time (Zen 5)."""
_TRANSPOSED_BYTES = 4
"""Size of the elements that are transposed in registers, in bytes."""
_OTHER_WAYS = 2
"""Number of lines of a set of the first-level cache that rows of a tile leave to other data."""


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """The plan of one product.

    Attributes:
        form: Product of matrices.
        tile: Register tile.
        block: Block of tiles that are computed together.
        threads: Number of threads that share the product.
        copies: Whether panels of the right matrix are packed where they are used.
        is_by_rows: Whether all tiles of some rows are computed before the next rows, not those of a panel.
        steps: Unroll factor of the sum (K-unroll).
        is_along_sum: Whether the lanes of vectors are parts of the sum, not columns.
    """

    form: GemmForm
    tile: GemmTile
    block: GemmBlock
    threads: int
    copies: bool
    is_by_rows: bool = False
    steps: int = 1
    is_along_sum: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether a tile is left before its sums are complete."""
        return self.block.depth < self.form.depth


def gemm_state(task: ScheduleTask) -> LoopState | None:
    """Return the state of a DAG with products of matrices; other stages are computed by rows."""
    plans = gemm_plans(task)
    return state_of_plans(task, plans) if plans else None


def gemm_plans(task: ScheduleTask) -> tuple[GemmPlan, ...]:
    """Return the default plan of each product of matrices for which tiles pay off."""
    return tuple(plan for op in task.dag.ops if (plan := _plan(op, task)) is not None)


def state_of_plans(task: ScheduleTask, plans: Sequence[GemmPlan]) -> LoopState:
    """Return the state of a DAG with plans for its products, from `gemm_plans` or modified."""
    products = frozenset(plan.form.op.name for plan in plans)
    kept = {plan.form.right.name for plan in plans if plan.copies}
    state = with_inlined(LoopState.initial(task.dag), kept)
    for plan in plans:
        right, is_read_there = plan.form.right.name, plan.is_along_sum and plan.form.right_is_moved
        if is_read_there and state[right].compute_at is not ComputeAt.INLINED:
            state = state.compute_inline(right)
    state = with_lane_reductions(state, task, products | kept)
    done = {stage.op.name for stage in state.stages if stage.compute_at is ComputeAt.INLINED}
    for plan in plans:
        state, names = with_product(state, plan, task, frozenset(done))
        done |= names
    return with_rows(state, task, frozenset(done))


def may_run_along_sum(form: GemmForm, task: ScheduleTask) -> bool:
    """Return whether the lanes of vectors can be parts of the sum, so that no matrix has to be moved."""
    if form.right_is_packed or not form.runs_along_sum:
        return False
    if form.right_is_moved:  # then it is read where it was
        is_shared = task.dag.readers[form.right] != (form.op,)
        if is_shared or task.analyzer.is_output(form.right):
            return False
    lanes = task.lanes(form.op)
    # A vector and a matrix as it is have another schedule: rows one by one, each with several partial sums.
    least = _LEAST_VECTORS if form.rows > 1 or form.right_is_moved else _LEAST_VECTORS_OF_ROW
    return lanes > 1 and form.depth >= least * lanes


def _plan(op: Operation, task: ScheduleTask) -> GemmPlan | None:
    form = gemm_form(op, task.analyzer)
    if form is None or work_of([form.op]) < _LEAST_WORK:
        return None
    is_along_sum = may_run_along_sum(form, task) and _pays_along_sum(form)
    if not (form.right_is_packed or form.right_runs_along_columns or is_along_sum):
        return None
    threads = task.threads if task.is_parallel(work_of([form.op])) else 1
    tile = _tile(form, task, threads, is_along_sum)
    pays_by_rows = not is_along_sum and _pays_by_rows(form, task)
    copies = not (form.right_is_packed or is_along_sum or pays_by_rows) and _pays_to_copy(form, tile)
    block = gemm_block(
        form, tile, task.isa.caches, threads, may_cut=not is_along_sum, copies=copies, costs=task.costs
    )
    is_by_rows = pays_by_rows and block.depth == form.depth
    return GemmPlan(form, tile, block, threads, copies, is_by_rows, is_along_sum=is_along_sum)


def right_is_far(form: GemmForm, task: ScheduleTask, threads: int) -> bool:
    """Return whether the right matrix is packed, and too large for the second-level caches of the threads.

    As it was given, tiles of one vector make no stream of it.
    """
    size = form.op.dtypes[0].numpy.itemsize
    return form.right_is_packed and form.depth * form.columns * size > threads * task.isa.caches.second


def _pays_along_sum(form: GemmForm) -> bool:
    """Return whether vectors run along the sum, where they can: by decision, or if there are few rows."""
    if form.decided is not None and form.right_runs_along_columns:
        return form.decided is MatrixPacking.ALONG_SUM
    return not form.right_runs_along_columns or pays_along_sum(form.rows, form.depth)


def _pays_by_rows(form: GemmForm, task: ScheduleTask) -> bool:
    """Return whether results are written row by row, and the right matrix is read from the cache each time.

    Panel by panel, results that do not stay in the second-level cache are written in pieces as wide as a
    tile, each on another page: the fewer products a result takes, the more that costs.
    """
    if form.row is None or form.decided is MatrixPacking.PANELS:
        return False
    size, second = form.op.dtypes[0].numpy.itemsize, task.isa.caches.second
    if form.rows * form.columns * size <= second:
        return False
    right = form.depth * form.columns * size
    if form.right_is_packed:
        return right <= second
    return form.depth <= _MOST_ROWS_UNPACKED and right <= second // 2 and not form.right_is_moved


def _pays_to_copy(form: GemmForm, tile: GemmTile) -> bool:
    """Return whether panels of the right matrix are packed: by decision, or if enough tiles use them."""
    if form.decided in (MatrixPacking.PANELS, MatrixPacking.UNPACKED) and form.row is not None:
        return form.decided is MatrixPacking.PANELS
    return form.rows >= (2 if form.right_is_moved else _REUSED * tile.rows)


def _tile(form: GemmForm, task: ScheduleTask, threads: int, is_along_sum: bool) -> GemmTile:
    is_far = right_is_far(form, task, threads)
    lanes = task.lanes(form.op)
    sizes = form.rows, form.columns, lanes, task.accumulators_of(form.op)
    rows_of_set = max(1, task.isa.machine.first_ways - _OTHER_WAYS)
    most_rows = min(MANY_ROWS, rows_of_set * cache_sets_of_rows(form, task))
    limits = threads * PIECES, is_far, is_along_sum, most_rows
    return gemm_tile(*sizes, *limits, task.costs, splits_words=task.splits_words(form.op))


def cache_sets_of_rows(form: GemmForm, task: ScheduleTask) -> int:
    """Return over how many sets of the first-level cache elements of one column of the left matrix spread.

    They are few where the distance of rows shares a large factor with that of elements of one set.
    """
    machine, size = task.isa.machine, form.op.dtypes[0].numpy.itemsize
    return machine.set_bytes // gcd(form.depth * size, machine.set_bytes)


def with_product(
    state: LoopState, plan: GemmPlan, task: ScheduleTask, others: frozenset[str]
) -> tuple[LoopState, set[str]]:
    """Schedule a product and its epilogue; return the state, and the names of these stages.

    Args:
        state: State in which the product has its declared loops.
        plan: Plan of the product.
        task: DAG and machine.
        others: Names of stages that are scheduled already.
    """
    form = plan.form
    product = result = form.op.name
    sink = product_sink(state, form.op, task)
    if sink is form.op:
        state = state.cache_write(result, "tile")
        product = state.stages[state.stage_id(result) - 1].op.name
    else:
        result = sink.name
    done = {product, result}
    state = _with_result_loops(state, result, plan)
    if plan.is_along_sum:
        state, parts = lane_parts(state, product, task.lanes(form.op))
        return with_lane_loops(state, product, parts, form, result), done | {*parts}
    panel = None
    if plan.copies:
        state, panel = _with_panel(state, product, form, others, task)
        done.add(panel)
    state = _with_product_loops(state, product, result, plan)
    if panel is not None:
        target = product if plan.is_cut else result
        state = state.compute_at(panel, target, _panel_loop(state, target, plan))
    return state, done


def outer_loops(state: LoopState, name: str, plan: GemmPlan) -> int:
    """Return the number of loops around the block of tiles, in the stage that a product ends in."""
    return len(state[name].iters) - 2 * _count(plan.form)


def product_sink(state: LoopState, op: ComputeOp, task: ScheduleTask) -> ComputeOp:
    """Return the last stage of a product's elementwise epilogue; the product itself if it has none."""
    sink = op
    while not task.dag.is_output(sink) and len(task.dag.readers[sink]) == 1:
        (reader,) = task.dag.readers[sink]
        if not (isinstance(reader, ComputeOp) and reader.combiner is None):
            break
        if not task.analyzer.elementwise_match(sink, reader):
            break
        sink = reader
        if state[sink.name].compute_at is not ComputeAt.INLINED:
            return sink
    return op


def _with_result_loops(state: LoopState, name: str, plan: GemmPlan) -> LoopState:
    """Order the loops: blocks as one outermost loop, then panels, tiles, and the elements of a tile."""
    form, tile, block = plan.form, plan.tile, plan.block
    axes = [loop.name for loop in state[name].iters]
    column, row = axes[form.column], None if form.row is None else axes[form.row]
    outer = [axis for axis in axes if axis not in (column, row)]
    state = state.split(name, column, [block.columns, tile.columns])
    outer, tiles, inner = [*outer, f"{column}.0"], [f"{column}.1"], [f"{column}.2"]
    if row is not None:
        state = state.split(name, row, [block.rows, tile.rows]).unroll(name, f"{row}.2")
        tiles = [f"{row}.1", *tiles] if plan.is_by_rows else [*tiles, f"{row}.1"]
        outer, inner = [f"{row}.0", *outer], [f"{row}.2", *inner]
    extents = {loop.name: loop.extent or 1 for loop in state[name].iters}
    outer = sorted(outer, key=lambda loop: extents[loop] > 1)
    state = state.reorder(name, [*outer, *tiles, *inner]).vectorize(name, inner[-1])
    if plan.threads == 1:
        return state
    first = next((position for position, loop in enumerate(outer) if extents[loop] > 1), len(outer) - 1)
    if first < len(outer) - 1:
        state = state.fuse(name, range(first, len(outer)))
    return state.parallel(name, first)


def _with_panel(
    state: LoopState, product: str, form: GemmForm, others: frozenset[str], task: ScheduleTask
) -> tuple[LoopState, str]:
    """Add a stage for a panel of the right matrix, and return its name.

    An elementwise stage that only this product reads is computed in panels itself, instead of a copy.
    """
    name = form.right.name
    right = state[name].op
    is_own = isinstance(right, ComputeOp) and right.combiner is None and name not in others
    is_free = is_own and state.current_dag.readers[right] == (state[product].op,)
    if not is_free or state.current_dag.is_output(right):
        state = state.cache_read(name, "panel", [product])
        name = state.stages[state.stage_id(name) + 1].op.name
    if form.right_is_moved:
        state = _with_unrolled_columns(state, name, task)
    return state.vectorize(name, state[name].iters[-1]), name


def _with_unrolled_columns(state: LoopState, name: str, task: ScheduleTask) -> LoopState:
    """Unroll the steps of the sum in a panel of a transposed matrix: they are neighbours in the matrix.

    The code generator transposes squares of them in registers (`emission/transposed_rows.py`).
    """
    op = state[name].op
    is_transposed = isinstance(op, ComputeOp) and all(
        dtype.numpy.itemsize == _TRANSPOSED_BYTES for dtype in op.dtypes
    )
    loops = state[name].iters
    if not is_transposed or len(loops) < 2:
        return state
    step = loops[-2].name
    state = state.split(name, step, [task.isa.machine.line_bytes // _TRANSPOSED_BYTES])
    return state.unroll(name, f"{step}.1")


def _with_product_loops(state: LoopState, product: str, result: str, plan: GemmPlan) -> LoopState:
    """Schedule the sum of a tile inside the loop over tiles: reduction outside, elements inside.

    If sums are cut: schedule those of a block inside the loop over blocks, pieces outside, then panels and
    tiles.
    """
    form, tile = plan.form, plan.tile
    loops = [loop.name for loop in state[product].iters]
    column, row = loops[form.column], None if form.row is None else loops[form.row]
    outer = [loop for loop in loops[: len(form.op.axes)] if loop not in (column, row)]
    (k,) = loops[len(form.op.axes) :]
    inner = [column] if row is None else [row, column]
    if plan.is_cut:
        state = state.split(product, k, [plan.block.depth]).split(product, column, [tile.columns])
        outer, k, inner = [*outer, f"{k}.0", f"{column}.0"], f"{k}.1", [f"{column}.1"]
        if row is not None:
            state = state.split(product, row, [tile.rows])
            outer, inner = [*outer, f"{row}.0"], [f"{row}.1", *inner]
    if plan.steps > 1:
        state = state.split(product, k, [plan.steps])
        outer, k = [*outer, f"{k}.0"], f"{k}.1"
    state = state.reorder(product, [*outer, k, *inner]).vectorize(product, inner[-1])
    if plan.steps > 1:
        state = state.unroll(product, k)
    if row is not None:
        state = state.unroll(product, inner[0])
    tiles = _count(form)
    position = len(state[result].iters) - (2 * tiles if plan.is_cut else tiles) - 1
    return state.compute_at(product, result, position)


def _panel_loop(state: LoopState, name: str, plan: GemmPlan) -> int:
    """Return the loop of a stage in which a panel is used: the one outside the loop over rows of tiles."""
    return len(state[name].iters) - _count(plan.form) - (3 if plan.is_cut else 2)


def _count(form: GemmForm) -> int:
    """Return the number of axes that are tiled."""
    return 1 if form.row is None else 2
