"""Schedule of any DAG: stages that share outer axes form one loop nest, which computes row by row.

Softmax of a matrix becomes one parallel loop over rows, in which maximum, exponentials, sum and quotient are
loops over that row; what is between them is a row long, and stays in the cache. A single stage is its loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from intarsia.native.dag import AccessAnalyzer
from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.lane_reduction import runs_along_rows, with_lane_reductions
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.schedule.stage_loops import with_loops, with_vectors
from intarsia.native.schedule.transposition import with_transposed_tiles
from intarsia.native.schedule.window_copies import rows_of_copy
from intarsia.native.te import ComputeOp, Operation


def row_state(task: ScheduleTask) -> LoopState:
    """Return the state of any DAG: stages are inlined if possible, else computed by rows or separately."""
    state = with_lane_reductions(with_inlined(LoopState.initial(task.dag)), task)
    return with_rows(state, task)


def with_rows(state: LoopState, task: ScheduleTask, done: frozenset[str] = frozenset()) -> LoopState:
    """Schedule all stages that are not inlined: each in the rows of a later one, or separately.

    Args:
        state: State in which no loop has been changed yet, except those of `done`.
        task: DAG and machine.
        done: Names of stages that are scheduled already.
    """
    for target, members in row_groups(state, done).items():
        work = work_of([state[name].op for name in (target, *members)])
        depth = shared_depth(state, target, members)
        if not depth:
            for name in (target, *members):
                state = with_transposed_tiles(state, name, task) or with_loops(state, name, task)
            continue
        state = _with_rows_of(state, target, depth, task, work)
        for name in members:
            state = with_vectors(state, name, task).compute_at(name, target, 0)
        for name in members:
            state = _with_copy_by_rows(state, name)
    return state


def _with_copy_by_rows(state: LoopState, name: str) -> LoopState:
    """Compute a copy for windows in a loop of its reader if that saves work."""
    copy = state[name].op
    readers = dict.fromkeys(_real_readers(state, copy))
    reader = next(iter(readers))
    row = rows_of_copy(state, copy, reader) if len(readers) == 1 else None
    return state if row is None else state.compute_at(name, reader.name, row)


def _with_rows_of(state: LoopState, target: str, depth: int, task: ScheduleTask, work: int) -> LoopState:
    """Schedule a stage whose outermost loop is over rows, with `depth` axes fused."""
    if depth > 1:
        state = state.fuse(target, range(depth))
    state = with_vectors(state, target, task, first=1)
    if task.is_parallel(work):
        state = state.parallel(target, 0)
    return state


def row_groups(state: LoopState, done: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the root stages, each with the stages that are computed in its rows."""
    dag = state.current_dag
    analyzer = AccessAnalyzer(dag)
    home: dict[Operation, Operation] = {}
    for stage in reversed(state.stages):
        op = stage.op
        if stage.compute_at is ComputeAt.INLINED:
            continue
        if not isinstance(op, ComputeOp) or op.name in done:
            home[op] = op
            continue
        homes = {home[reader] for reader in _real_readers(state, op)}
        target = next(iter(homes)) if len(homes) == 1 and not dag.is_output(op) else op
        is_apart = target.name in done or not analyzer.num_common_outer_iterators(op, target)
        home[op] = op if is_apart else target
    groups: dict[str, tuple[str, ...]] = {
        op.name: () for op in home if home[op] is op and op.name not in done
    }
    for op, target in home.items():
        if op is not target:
            groups[target.name] = (*groups[target.name], op.name)
    return groups


def _real_readers(state: LoopState, op: Operation) -> Iterable[Operation]:
    """Return the operations that read an operation, directly or through inlined ones."""
    inlined = {stage.op for stage in state.stages if stage.compute_at is ComputeAt.INLINED}
    readers, stack = dict[Operation, None](), [op]
    while stack:
        for reader in state.current_dag.readers[stack.pop()]:
            if reader in inlined:
                stack.append(reader)
            else:
                readers[reader] = None
    return readers


def shared_depth(state: LoopState, target: str, members: tuple[str, ...]) -> int:
    """Return how many outer axes a stage shares with all stages in its rows; 0 if it is alone.

    One axis is left to vectorise, unless the rows are reduced along, or contain partial results, which have a
    separate axis to vectorise. Stages that are read several times, but reduce nothing, leave one as well.
    """
    analyzer = AccessAnalyzer(state.current_dag)
    op = state[target].op
    ops = [state[name].op for name in members]
    shared = min((analyzer.num_common_outer_iterators(op_in_rows, op) for op_in_rows in ops), default=0)
    has_tiles = any(
        isinstance(op_in_rows, ComputeOp) and len(op_in_rows.axes) <= shared and _is_across(op_in_rows)
        for op_in_rows in ops
    )
    reduces = any(isinstance(op_in_rows, ComputeOp) and op_in_rows.reduce_axes for op_in_rows in (op, *ops))
    most = max(0, len(op.buffers[0].shape) - 1)
    if shared and not _have_vectors((op, *ops), shared):
        return min(shared - 1, most)
    return min(shared, most) if has_tiles or not reduces else shared


def _have_vectors(ops: Iterable[Operation], depth: int) -> bool:
    """Return whether an operation has an axis to vectorise behind the outer ones; short sums have none."""
    return any(axis.extent > 1 for op in ops if isinstance(op, ComputeOp) for axis in op.axes[depth:])


def _is_across(op: ComputeOp) -> bool:
    """Return whether an operation is a reduction with contiguous results rather than arguments."""
    return op.combiner is not None and bool(op.axes) and not runs_along_rows(op)
