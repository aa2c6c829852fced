"""The printed Python code of a history, run on a schedule."""

from __future__ import annotations

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState, Schedule


def run_python_code(dag: ComputeDAG, code: str) -> LoopState:
    """The state of a DAG after the calls of printed code."""
    schedule = Schedule(dag)
    exec(compile(code, "schedule", "exec"), schedule.names())
    return schedule.state


def shape_of(state: LoopState) -> object:
    """What two states share that make the same loops, whatever they call them."""
    stages = [
        (
            stage.op.name,
            stage.compute_at,
            [(loop.extent, loop.kind, loop.annotation) for loop in stage.iters],
            (stage.auto_unroll_max_step, stage.storage_offset),
        )
        for stage in state.stages
    ]
    return stages, state.attach_map
