"""DAGs around one operation on blocked tensors: what is done to its results while they are in registers."""

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
    """A reduction with a schedule of its own, and the stages around it.

    Attributes:
        state: All that is cheap is inlined; no loop has been changed yet.
        kind: The operation's attribute `blocked`.
        anchor: The stage that reduces.
        target: The stage that does the rest to an element, and writes it; its axes are those of the anchor.
        pad: The stage of the padded input, if there is one.
        left: Other stages that get their loops elsewhere.
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
        """With loops for the stages that no rule has taken."""
        own = {self.anchor, self.target, self.pad, *self.left}
        for stage in self.state.stages:
            if stage.compute_at is ComputeAt.ROOT and stage.op.name not in own:
                state = with_loops(state, stage.op.name, task)
        return state


def blocked_chain(task: ScheduleTask) -> BlockedChain | None:
    """The chain of a DAG; None if there is none, or several."""
    anchors = [op for op in task.dag.ops if op.attrs.get(BLOCKED) not in (None, PADDING)]
    op = anchors[0] if len(anchors) == 1 else None
    if not isinstance(op, ComputeOp):
        return None
    kind, pad = str(op.attrs[BLOCKED]), _padding(op)
    target = chain_end(task, op)
    state, anchor = LoopState.initial(task.dag), op.name
    if target is op:
        state = state.cache_write(op, "local")
        anchor = f"{op.name}.local"
    state = with_inlined(state, {anchor, target.name, *([pad] if pad else [])})
    return BlockedChain(state, kind, anchor, target.name, pad)


def _padding(op: ComputeOp) -> str | None:
    found = [tensor.op.name for tensor in op.inputs if tensor.op.attrs.get(BLOCKED) == PADDING]
    return found[0] if found else None


def chain_end(task: ScheduleTask, op: ComputeOp) -> Operation:
    """The last of the operations that read each other element by element, from `op` on."""
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
