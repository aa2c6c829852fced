"""DAGs around one operation on blocked tensors, whose epilogue runs while results are in registers."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.stage_loops import with_loops
from intarsia.native.te import ComputeOp, Operation
from intarsia.native.te.operators.blocked_layout import BLOCKED, PADDING


@dataclass(frozen=True)
class BlockedChain:
    """An anchor reduction and the stages around it.

    Attributes:
        state: State with cheap stages inlined, and no loop changed yet.
        kind: Attribute `blocked` of the operation.
        anchor: Name of the stage that reduces.
        target: Name of the stage that computes the epilogue and writes the results; its axes are the
            anchor's.
        pad: Name of the stage of the padded input, None without one.
        left: Names of other stages that are scheduled elsewhere.
    """

    state: LoopState
    kind: str
    anchor: str
    target: str
    pad: str | None
    left: frozenset[str] = frozenset()

    @property
    def reduction(self) -> ComputeOp:
        """The operation of the anchor."""
        op = self.state[self.anchor].op
        assert isinstance(op, ComputeOp), "nothing else reduces"
        return op

    def with_rest(self, state: LoopState, task: ScheduleTask) -> LoopState:
        """Return the state with loops for all other stages."""
        for name in self._rest:
            state = with_loops(state, name, task)
        return state

    @property
    def has_rest(self) -> bool:
        """Whether other stages have loops of their own."""
        return bool(self._rest)

    @property
    def _rest(self) -> tuple[str, ...]:
        """Names of the other stages that are computed in loops."""
        scheduled = {self.anchor, self.target, self.pad, *self.left}
        roots = (stage.op for stage in self.state.stages if stage.compute_at is ComputeAt.ROOT)
        return tuple(op.name for op in roots if isinstance(op, ComputeOp) and op.name not in scheduled)


def blocked_chain(task: ScheduleTask) -> BlockedChain | None:
    """Return the chain of a DAG; None if it has none, or several."""
    anchors = [op for op in task.dag.ops if op.attrs.get(BLOCKED) not in (None, PADDING)]
    op = anchors[0] if len(anchors) == 1 else None
    if not isinstance(op, ComputeOp):
        return None
    return chain_around(task, op, _padding(op), str(op.attrs[BLOCKED]))


def chain_around(task: ScheduleTask, op: ComputeOp, pad: str | None, kind: str) -> BlockedChain:
    """Return the chain of a reduction, with cheap stages inlined, its anchor, and the stage of the results.

    Args:
        task: DAG and machine.
        op: The reduction.
        pad: Name of the stage of its padded input, None without one.
        kind: Kind of the reduction.
    """
    target = chain_end(task, op)
    state, anchor = LoopState.initial(task.dag), op.name
    if target is op:
        state = state.cache_write(op, "local")
        anchor = f"{op.name}.local"
    state = with_inlined(state, {anchor, target.name, *([pad] if pad else [])})
    return BlockedChain(state, kind, anchor, target.name, pad)


def _padding(op: ComputeOp) -> str | None:
    names = [tensor.op.name for tensor in op.inputs if tensor.op.attrs.get(BLOCKED) == PADDING]
    return names[0] if names else None


def chain_end(task: ScheduleTask, op: ComputeOp) -> Operation:
    """Return the last operation of the elementwise chain that begins with `op`."""
    last: ComputeOp = op
    while not task.dag.is_output(last):
        readers = task.dag.readers[last]
        if len(readers) != 1:
            break
        reader = readers[0]
        if not isinstance(reader, ComputeOp) or reader.combiner is not None or reader.shape != op.shape:
            break
        if task.analyzer.num_common_outer_iterators(last, reader) != len(op.axes):
            break
        last = reader
    return last
