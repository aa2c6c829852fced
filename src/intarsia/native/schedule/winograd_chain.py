"""DAGs around one convolution by Winograd's transforms: its stages, and what is done to its results."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.blocked_chain import chain_end
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.stage_loops import with_loops
from intarsia.native.te import ComputeOp, Operation
from intarsia.native.te.operators.blocked_layout import BLOCKED, WINOGRAD


@dataclass(frozen=True)
class WinogradChain:
    """The operations of `te.operators.winograd`, and the stage that ends with their results.

    Attributes:
        state: All that is cheap is inlined; no loop has been changed yet.
        pad: The stage of the padded input, if there is one.
        rows: Makes rows of transformed inputs.
        inputs: Makes transformed inputs.
        product: Sums over channels.
        half: Makes rows of results.
        target: The stage that makes results, does the rest to an element, and writes it.
    """

    state: LoopState
    pad: str | None
    rows: str
    inputs: str
    product: str
    half: str
    target: str

    @property
    def sums(self) -> ComputeOp:
        """The operation that sums over channels: (N, i, j, blocks, tiles, lanes)."""
        op = self.state[self.product].op
        assert isinstance(op, ComputeOp), "it is a reduction"
        return op

    @property
    def tile(self) -> int:
        """How many results a tile has along each dimension."""
        op = self.state[self.half].op
        assert isinstance(op, ComputeOp), "it combines elements"
        return op.shape[3]

    @property
    def image(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        op = self.state[self.target].op
        assert isinstance(op, ComputeOp), "it makes the results"
        down, across = (-(-extent // self.tile) for extent in op.shape[2:4])
        return down, across

    @property
    def weight_bytes(self) -> int:
        """Of transformed weights."""
        return prod(self.sums.inputs[1].shape) * self.sums.dtypes[0].numpy.itemsize

    @property
    def input_bytes(self) -> int:
        """Of all transformed inputs."""
        return prod(self.sums.inputs[0].shape) * self.sums.dtypes[0].numpy.itemsize

    def with_rest(self, state: LoopState, task: ScheduleTask) -> LoopState:
        """With loops for the stages that no rule has taken."""
        own = {self.pad, self.rows, self.inputs, self.product, self.half, self.target}
        for stage in self.state.stages:
            if stage.compute_at is ComputeAt.ROOT and stage.op.name not in own:
                state = with_loops(state, stage.op.name, task)
        return state


def winograd_chain(task: ScheduleTask) -> WinogradChain | None:
    """The chain of a DAG; None if there is none, or several."""
    found: list[Operation] = [op for op in task.dag.ops if op.attrs.get(BLOCKED) == WINOGRAD]
    if len(found) != 1 or not isinstance(found[0], ComputeOp):
        return None
    result: ComputeOp = found[0]
    op: Operation = result
    target, names = chain_end(task, result), []
    for _ in range(4):
        op = op.inputs[0].op
        names.append(op.name)
    source = op.inputs[0].op
    pad = source.name if isinstance(source, ComputeOp) else None
    half, product, inputs, rows = names
    kept = {*names, target.name, *([pad] if pad else [])}
    state = with_inlined(LoopState.initial(task.dag), kept)
    if state[result.name].compute_at is ComputeAt.ROOT and target is not result:
        state = state.compute_inline(result.name)
    return WinogradChain(state, pad, rows, inputs, product, half, target.name)
