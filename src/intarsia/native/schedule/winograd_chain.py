"""DAGs around one convolution by Winograd's transforms: its stages and its epilogue."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.blocked_chain import chain_end
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.stage_loops import with_loops
from intarsia.native.te import ComputeOp, Operation
from intarsia.native.te.operators.blocked_layout import BLOCKED, OWN_BLOCKS, WINOGRAD


@dataclass(frozen=True)
class WinogradChain:
    """The stages of `te.operators.winograd`, and the last stage of the epilogue.

    Attributes:
        state: State with cheap stages inlined, and no loop changed yet.
        pad: Name of the stage of the padded input, None without one.
        rows: Name of the stage that transforms inputs along rows.
        inputs: Name of the stage of transformed inputs.
        product: Name of the stage that sums over channels.
        half: Name of the stage that transforms results along rows.
        target: Name of the stage that computes the epilogue and writes the results.
        group_blocks: Number of blocks of results of a group; 0 for a convolution of one group.
    """

    state: LoopState
    pad: str | None
    rows: str
    inputs: str
    product: str
    half: str
    target: str
    group_blocks: int

    @property
    def sums(self) -> ComputeOp:
        """Operation that sums over channels, of shape (N, i, j, blocks, tiles, lanes)."""
        op = self.state[self.product].op
        assert isinstance(op, ComputeOp), "it is a reduction"
        return op

    @property
    def group_inputs(self) -> int:
        """Number of blocks of input channels that a block of results reads."""
        return self.sums.reduce_axes[0].extent

    @property
    def tile(self) -> int:
        """Number of results of a tile along each dimension."""
        op = self.state[self.half].op
        assert isinstance(op, ComputeOp), "it combines elements"
        return op.shape[3]

    @property
    def image(self) -> tuple[int, int]:
        """Numbers of rows and columns of tiles."""
        op = self.state[self.target].op
        assert isinstance(op, ComputeOp), "it makes the results"
        down, across = (-(-extent // self.tile) for extent in op.shape[2:4])
        return down, across

    @property
    def weight_bytes(self) -> int:
        """Size of transformed weights, in bytes."""
        return prod(self.sums.inputs[1].shape) * self.sums.dtypes[0].numpy.itemsize

    @property
    def input_bytes(self) -> int:
        """Size of all transformed inputs, in bytes."""
        return prod(self.sums.inputs[0].shape) * self.sums.dtypes[0].numpy.itemsize

    def with_rest(self, state: LoopState, task: ScheduleTask) -> LoopState:
        """Return the state with loops for all other stages."""
        scheduled = {self.pad, self.rows, self.inputs, self.product, self.half, self.target}
        for stage in self.state.stages:
            if stage.compute_at is ComputeAt.ROOT and stage.op.name not in scheduled:
                state = with_loops(state, stage.op.name, task)
        return state


def winograd_chain(task: ScheduleTask) -> WinogradChain | None:
    """Return the chain of a DAG; None if it has none, or several."""
    results: list[Operation] = [op for op in task.dag.ops if op.attrs.get(BLOCKED) == WINOGRAD]
    if len(results) != 1 or not isinstance(results[0], ComputeOp):
        return None
    result: ComputeOp = results[0]
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
    own_blocks = result.attrs.get(OWN_BLOCKS)
    group_blocks = own_blocks if isinstance(own_blocks, int) else 0
    return WinogradChain(state, pad, rows, inputs, product, half, target.name, group_blocks)
