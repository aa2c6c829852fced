"""State after a step that adds an operation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state.stage import Stage

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview


def with_new_stage(state: LoopPreview, dag: ComputeDAG, op_id: int) -> LoopPreview:
    """Return the state over a DAG with a new operation number `op_id`; the other stages keep their loops."""
    kept = iter(state.stages)
    stages = tuple(
        Stage.of(op) if number == op_id else replace(next(kept), op=op) for number, op in enumerate(dag.ops)
    )
    moved = state.attach_map.with_stages_shifted(op_id)
    return state.with_fields(stages=stages, current_dag=dag, attach_map=moved)
