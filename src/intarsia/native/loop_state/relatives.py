"""Which stages read which, as the state stands: inlined stages are looked through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.native.loop_state.stage import ComputeAt

if TYPE_CHECKING:
    from intarsia.native.loop_state.state import LoopState


def consumers(state: LoopState, stage_id: int) -> frozenset[int]:
    """The stages that read a stage's values, directly or through inlined stages."""
    dag = state.current_dag
    found: set[int] = set()
    stack = [dag.op_ids[reader] for reader in dag.readers[state.stages[stage_id].op]]
    while stack:
        reader = stack.pop()
        if state.stages[reader].compute_at is ComputeAt.INLINED:
            stack.extend(dag.op_ids[each] for each in dag.readers[state.stages[reader].op])
        else:
            found.add(reader)
    return frozenset(found)


def producers(state: LoopState, stage_id: int) -> frozenset[int]:
    """The stages whose values a stage reads, directly or through inlined stages."""
    found: set[int] = set()
    stack = sorted(direct_producers(state, stage_id))
    while stack:
        producer = stack.pop()
        if state.stages[producer].compute_at is ComputeAt.INLINED:
            stack.extend(direct_producers(state, producer))
        else:
            found.add(producer)
    return frozenset(found)


def direct_producers(state: LoopState, stage_id: int) -> frozenset[int]:
    """The stages that a stage reads, inlined or not."""
    return frozenset(state.current_dag.op_ids[tensor.op] for tensor in state.stages[stage_id].op.inputs)
