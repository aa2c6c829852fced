"""Schedule of attention: scores, softmax and the product with values, one block of rows at a time.

for batches, heads, blocks of rows, parallel
  scores of the block with all keys, in scratch memory, with what follows them
  for rows of the block: maximum, exponentials, sum, shares
  for tiles: the product with the values, and what follows it

So memory holds the scores of one block only, as many as fit into the second-level cache. Softmax along blocks
of keys (FlashAttention, NeurIPS 2022) would need less memory, but rescales all sums for each block; a CPU's
cache has room for several whole rows of many thousands of keys.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Final, NamedTuple

from intarsia.ir.prim_func import Load
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.gemm import GemmPlan, gemm_plans, outer_loops, product_sink, with_product
from intarsia.native.schedule.gemm_block import GemmBlock
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.lane_reduction import with_lane_reductions
from intarsia.native.schedule.row_schedule import with_rows
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.stage_loops import with_vectors
from intarsia.native.te import ComputeOp, Operation

_SHARE: Final = 1
"""Divisor of the second-level cache size that gives the memory of a block.

Each block packs keys and values.
"""
_CHUNKS: Final = 4
"""Number of blocks per thread, so that a late block delays the others only briefly."""


class AttentionChain(NamedTuple):
    """Two products with a softmax between them.

    Attributes:
        scores: Plan of the first product.
        masked: Last elementwise operation after it, such as the mask.
        between: Operations after `masked`, in order; the last one is the left matrix of the second product.
        result: Plan of the second product.
    """

    scores: GemmPlan
    masked: ComputeOp
    between: tuple[ComputeOp, ...]
    result: GemmPlan


def attention_state(task: ScheduleTask) -> LoopState | None:
    """Return the state of a DAG around the products of attention; None for others."""
    chain = attention_chain(task)
    return None if chain is None else state_of_blocks(chain, task, tiles_of_block(chain, task))


def attention_chain(task: ScheduleTask) -> AttentionChain | None:
    """Return the products of a DAG, if the second one reads the rows of the first."""
    plans = gemm_plans(task)
    if len(plans) != 2 or any(plan.is_along_sum or plan.form.row is None for plan in plans):
        return None
    scores, result = plans
    masked = _last_element_by_element(scores.form.op, task)
    between = _between(masked, result.form.left, task)
    if not any(op.combiner is not None for op in between):
        return None
    return AttentionChain(scores, masked, between, result)


def _last_element_by_element(op: ComputeOp, task: ScheduleTask) -> ComputeOp:
    """Return the last operation of the elementwise chain after an operation."""
    while len(task.dag.readers[op]) == 1:
        (reader,) = task.dag.readers[op]
        if not (isinstance(reader, ComputeOp) and reader.combiner is None):
            break
        if not task.analyzer.elementwise_match(op, reader):
            break
        op = reader
    return op


def _between(first: ComputeOp, last: Operation, task: ScheduleTask) -> tuple[ComputeOp, ...]:
    """Return the operations between two others, in order; () unless they are rows of the same shape."""
    members: set[ComputeOp] = set()
    waiting = [last]
    while waiting:
        op = waiting.pop()
        if op is not first and isinstance(op, ComputeOp) and op not in members:
            members.add(op)
            waiting += [tensor.op for tensor in op.inputs]
    readers = {reader for op in (first, *members) if op is not last for reader in task.dag.readers[op]}
    # The last one may have fewer elements, such as words of two numbers each.
    are_rows = all(
        op.shape in (first.shape, first.shape[:-1]) or (op is last and op.shape[:-1] == first.shape[:-1])
        for op in members
    )
    if not are_rows or not readers <= members or any(map(task.analyzer.is_output, (first, *members))):
        return ()
    return tuple(op for op in task.dag.ops if isinstance(op, ComputeOp) and op in members)


def tiles_of_block(chain: AttentionChain, task: ScheduleTask) -> int:
    """Return the number of row tiles of a block: as many as fit into the cache and as threads can share."""
    form, tile = chain.result.form, chain.result.tile
    row_bytes = chain.masked.shape[-1] * chain.masked.dtypes[0].numpy.itemsize
    most = max(1, task.isa.caches.second // _SHARE // (row_bytes * tile.rows))
    tiles = -(-form.rows // tile.rows)
    batch = prod(axis.extent for axis in form.op.axes) // (form.rows * form.columns)
    wanted = -(-task.threads * _CHUNKS // batch) if chain.result.threads > 1 else 1
    return -(-tiles // max(-(-tiles // most), min(wanted, tiles)))


def state_of_blocks(chain: AttentionChain, task: ScheduleTask, tiles: int) -> LoopState:
    """Return the state with a number of row tiles of the result in a block."""
    rows = tiles * chain.result.tile.rows
    products = (chain.scores, chain.result)
    panels = {plan.form.right.name for plan in products if plan.copies}
    kept = panels | {chain.masked.name, chain.between[-1].name}
    state = with_inlined(LoopState.initial(task.dag), kept)
    queries = chain.scores.form.left
    if _is_moved_only(queries, chain.scores.form.op, task) and not _is_inlined(state, queries.name):
        state = state.compute_inline(queries.name)
    state = with_lane_reductions(state, task, kept | {plan.form.op.name for plan in products})
    done = {stage.op.name for stage in state.stages if _is_inlined(state, stage.op.name)}
    result = _with_block(chain.result, rows, chain.result.threads)
    state, names = with_product(state, result, task, frozenset(done))
    done |= names
    target = product_sink(state, chain.result.form.op, task).name
    position = outer_loops(state, target, result) - 1
    state, names = _with_softmax(state, chain, task)
    done |= names
    state = state.compute_at(chain.between[-1].name, target, position)
    state, names = with_product(state, _with_block(chain.scores, rows, 1), task, frozenset(done))
    state = state.compute_at(chain.masked.name, target, position)
    return with_rows(state, task, frozenset(done | names))


def _is_moved_only(op: Operation, reader: ComputeOp, task: ScheduleTask) -> bool:
    """Return whether an operation only rearranges elements, for one reader."""
    is_own = isinstance(op, ComputeOp) and task.dag.readers[op] == (reader,)
    return is_own and isinstance(op, ComputeOp) and len(op.bodies) == 1 and isinstance(op.bodies[0], Load)


def _is_inlined(state: LoopState, name: str) -> bool:
    return state[name].compute_at is ComputeAt.INLINED


def _with_block(plan: GemmPlan, rows: int, threads: int) -> GemmPlan:
    """Return the plan of a product for a block of rows, with all its columns."""
    tiles, across = -(-rows // plan.tile.rows), -(-plan.form.columns // plan.tile.columns)
    return replace(plan, block=GemmBlock(tiles, across, plan.form.depth), threads=threads)


def _with_softmax(state: LoopState, chain: AttentionChain, task: ScheduleTask) -> tuple[LoopState, set[str]]:
    """Schedule the stages between the products, with their partial results, row by row.

    Return their names.
    """
    last, members_of_softmax = chain.between[-1].name, {op.name for op in chain.between}
    names = [stage.op.name for stage in state.stages]
    members = [
        name
        for name in names
        if name.split(".rf")[0] in members_of_softmax - {last} and not _is_inlined(state, name)
    ]
    row = len(chain.between[-1].axes) - 2
    state = with_vectors(state, last, task)
    for name in reversed(members):
        state = with_vectors(state, name, task).compute_at(name, last, row)
    return state, {last, *members}
