"""Schedule of products with weights of few bits: numbers are unpacked once for all rows of a register tile.

for tiles of rows, for panels of columns, parallel
  for blocks of the sum
    for words of the block
      for numbers of a word, unrolled
        for rows of the tile, unrolled
          for columns of the panel, vectorised
            part += left * number
    for rows, for columns: sums += part * scale
  for rows, for columns: result = what follows(sums)

With one row the weights are read once, in the order of memory. With many rows a panel is read again for each
tile, from the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.row_schedule import with_rows
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.te import ComputeOp, Operation
from intarsia.native.te.op_attrs import BLOCK_SUMS

_SUMS_OF_ELEMENT: Final = 2
"""Registers of each vector of a tile: that of its block, and that of all blocks."""


@dataclass(frozen=True, slots=True)
class BlockProduct:
    """A product with weights of few bits.

    Attributes:
        sums: Sum over blocks, with axes (rows ..., panel, column of the panel).
        parts: Sums of blocks.
        result: Last operation of what follows, with axes (rows ..., column).
    """

    sums: ComputeOp
    parts: ComputeOp
    result: ComputeOp

    @property
    def digits(self) -> int:
        """Sums of a block for each element of a tile: 1, or digits of the left matrix."""
        digits = self.sums.attrs[BLOCK_SUMS]
        assert isinstance(digits, int), "it is a number of sums"
        return digits

    @property
    def row(self) -> int | None:
        """Axis of the rows of tiles: the longest one; None for one row."""
        extents = [axis.extent for axis in self.sums.axes[:-2]]
        longest = max(extents, default=1)
        return extents.index(longest) if longest > 1 else None

    @property
    def rows(self) -> int:
        """Number of rows along that axis."""
        return 1 if self.row is None else self.sums.axes[self.row].extent

    def most_rows(self, task: ScheduleTask) -> int:
        """Return the most rows of a tile whose sums stay in registers."""
        vectors = -(-self.sums.shape[-1] // task.lanes(self.sums))
        most = max(1, min(self.rows, task.accumulators // ((_SUMS_OF_ELEMENT + self.digits - 1) * vectors)))
        # Tiles of nearly equal size: five rows are three and two, not four and one.
        return -(-self.rows // -(-self.rows // most)) if self.digits > 1 else most


def block_products(task: ScheduleTask) -> tuple[BlockProduct, ...]:
    """Return the products with weights of few bits of a DAG."""
    state = with_inlined(LoopState.initial(task.dag))
    marked = [op for op in task.dag.ops if isinstance(op, ComputeOp) and BLOCK_SUMS in op.attrs]
    return tuple(_product(sums, task, state) for sums in marked)


def block_product_state(task: ScheduleTask, rows: int | None = None) -> LoopState | None:
    """Return the state of a DAG with products with weights of few bits; None if it has none.

    Args:
        task: DAG and machine.
        rows: Rows of a tile; as many as stay in registers if not given.
    """
    products = block_products(task)
    if not products:
        return None
    state = with_inlined(LoopState.initial(task.dag))
    done = {stage.op.name for stage in state.stages if stage.compute_at is ComputeAt.INLINED}
    for product in products:
        state = _with_product(state, product, task, rows or product.most_rows(task))
        done |= {product.sums.name, product.parts.name, product.result.name}
    return with_rows(state, task, frozenset(done))


def _product(sums: ComputeOp, task: ScheduleTask, state: LoopState) -> BlockProduct:
    parts = next(
        op for tensor in sums.inputs if isinstance(op := tensor.op, ComputeOp) and len(op.reduce_axes) > 1
    )
    result: Operation = sums
    while result is sums or state[result.name].compute_at is ComputeAt.INLINED:
        (result,) = task.dag.readers[result]
    assert isinstance(result, ComputeOp), "columns are read from panels"
    return BlockProduct(sums, parts, result)


def _with_product(state: LoopState, product: BlockProduct, task: ScheduleTask, rows: int) -> LoopState:
    result, sums, parts = product.result.name, product.sums.name, product.parts.name
    *outer, column = [loop.name for loop in state[result].iters]
    state = state.split(result, column, [product.sums.shape[-1]])
    inner = [f"{column}.1"]
    if product.row is not None:
        row = outer[product.row]
        state = state.split(result, row, [rows]).unroll(result, f"{row}.1")
        outer[product.row], inner = f"{row}.0", [f"{row}.1", *inner]
    outer.append(f"{column}.0")
    state = state.reorder(result, [*outer, *inner]).vectorize(result, inner[-1])
    position = len(outer) - 1
    if task.is_parallel(work_of([product.parts])):
        state = state.fuse(result, range(len(outer))) if len(outer) > 1 else state
        state, position = state.parallel(result, 0), 0
    state = _with_sums(state, sums, product.row).compute_at(sums, result, position)
    blocks = product.sums.reduce_axes[0].name
    has_digits = product.digits > 1
    return _with_sums(state, parts, product.row, has_digits=has_digits).compute_at(parts, sums, blocks)


def _with_sums(state: LoopState, name: str, row: int | None, *, has_digits: bool = False) -> LoopState:
    """Order the loops of a sum: the reduction outside of a tile's rows, digits and columns."""
    op = state[name].op
    assert isinstance(op, ComputeOp), "it is a sum"
    loops = [loop.name for loop in state[name].iters]
    reduced = loops[len(op.axes) :]
    *outer, lane = loops[: len(op.axes)]
    inner = [outer.pop()] if has_digits else []
    tile = [*([] if row is None else [outer.pop(row)]), *inner]
    state = state.reorder(name, [*outer, *reduced, *tile, lane]).vectorize(name, lane)
    for loop in (*reduced[1:], *tile):
        state = state.unroll(name, loop)
    return state
