"""Readers and producers of stages in a state, looking through inlined stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.native.loop_state.stage import ComputeAt

if TYPE_CHECKING:
    from intarsia.native.loop_state.state import LoopState


def consumers(state: LoopState, stage_id: int) -> frozenset[int]:
    """Return the stages that read a stage's values, directly or through inlined stages."""
    dag = state.current_dag
    readers: set[int] = set()
    stack = [dag.op_ids[reader] for reader in dag.readers[state.stages[stage_id].op]]
    while stack:
        reader = stack.pop()
        if state.stages[reader].compute_at is ComputeAt.INLINED:
            stack.extend(dag.op_ids[op] for op in dag.readers[state.stages[reader].op])
        else:
            readers.add(reader)
    return frozenset(readers)


def producers(state: LoopState, stage_id: int) -> frozenset[int]:
    """Return the stages whose values a stage reads, directly or through inlined stages."""
    stage_ids: set[int] = set()
    stack = sorted(direct_producers(state, stage_id))
    while stack:
        producer = stack.pop()
        if state.stages[producer].compute_at is ComputeAt.INLINED:
            stack.extend(direct_producers(state, producer))
        else:
            stage_ids.add(producer)
    return frozenset(stage_ids)


def direct_producers(state: LoopState, stage_id: int) -> frozenset[int]:
    """Return the stages that a stage reads, inlined or not."""
    return frozenset(state.current_dag.op_ids[tensor.op] for tensor in state.stages[stage_id].op.inputs)
