"""Schedules of everything: stages that share outer axes in one nest of loops, rows at a time.

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
from intarsia.native.te import ComputeOp, Operation


def row_state(task: ScheduleTask) -> LoopState:
    """The state of any DAG: what can be inlined is, and the rest is computed by rows, or on its own."""
    state = with_lane_reductions(with_inlined(LoopState.initial(task.dag)), task)
    return with_rows(state, task)


def with_rows(state: LoopState, task: ScheduleTask, done: frozenset[str] = frozenset()) -> LoopState:
    """All stages that are not inlined, from the last to the first: each in the rows of a later one, or root.

    Args:
        state: Where no loop has been changed yet, but for those of `done`.
        task: The machine.
        done: Names of stages that have their loops.
    """
    for target, members in _groups(state, done).items():
        work = work_of([state[name].op for name in (target, *members)])
        depth = _depth(state, target, members)
        if not depth:
            for name in (target, *members):
                state = with_loops(state, name, task)
            continue
        state = _with_rows_of(state, target, depth, task, work)
        for name in members:
            state = with_vectors(state, name, task).compute_at(name, target, 0)
    return state


def _with_rows_of(state: LoopState, target: str, depth: int, task: ScheduleTask, work: int) -> LoopState:
    """The loops of a stage whose outermost one is the rows, `depth` axes as one."""
    if depth > 1:
        state = state.fuse(target, range(depth))
    state = with_vectors(state, target, task, first=1)
    if task.is_parallel(work):
        state = state.parallel(target, 0)
    return state


def _groups(state: LoopState, done: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Stages that stand for themselves, each with those that are computed in its rows."""
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
    found: dict[str, tuple[str, ...]] = {op.name: () for op in home if home[op] is op and op.name not in done}
    for op, target in home.items():
        if op is not target:
            found[target.name] = (*found[target.name], op.name)
    return found


def _real_readers(state: LoopState, op: Operation) -> Iterable[Operation]:
    """Who reads an operation, those that read it through inlined ones among them."""
    inlined = {stage.op for stage in state.stages if stage.compute_at is ComputeAt.INLINED}
    readers, stack = dict[Operation, None](), [op]
    while stack:
        for reader in state.current_dag.readers[stack.pop()]:
            if reader in inlined:
                stack.append(reader)
            else:
                readers[reader] = None
    return readers


def _depth(state: LoopState, target: str, members: tuple[str, ...]) -> int:
    """How many outer axes a stage shares with all that are computed in its rows; 0 if it stands alone.

    One axis is left to be vectorised, unless the rows are those of reductions along them, or of partial
    results, which have an axis of their own for that.
    """
    analyzer = AccessAnalyzer(state.current_dag)
    op = state[target].op
    ops = [state[name].op for name in members]
    shared = min((analyzer.num_common_outer_iterators(each, op) for each in ops), default=0)
    has_tiles = any(
        isinstance(each, ComputeOp) and len(each.axes) <= shared and _is_across(each) for each in ops
    )
    return min(shared, len(op.buffers[0].shape) - 1) if has_tiles else shared


def _is_across(op: ComputeOp) -> bool:
    """Whether an operation is a reduction whose results, not its arguments, lie side by side."""
    return op.combiner is not None and bool(op.axes) and not runs_along_rows(op)
