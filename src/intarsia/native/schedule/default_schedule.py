"""The schedule of a DAG without search: the first rule that applies, or what is always right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.attention import attention_state
from intarsia.native.schedule.blocked import blocked_state
from intarsia.native.schedule.channels_last import channels_last_state
from intarsia.native.schedule.gemm import gemm_state
from intarsia.native.schedule.row_schedule import row_state
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.support.errors import UsageError

Rule: TypeAlias = Callable[[ScheduleTask], LoopState | None]
"""The state of a DAG for a machine; None where the rule does not apply.

A rule lives in a file of its own, named after what it is for, and is added to RULES below. It starts from
`LoopState.initial(task.dag)`, refers to stages by name (steps move their numbers), and may use
`inlining.with_inlined`, and `stage_loops.with_loops` for stages that it does not care about.
"""

RULES: Final[tuple[Rule, ...]] = (blocked_state, attention_state, gemm_state, channels_last_state, row_state)
"""In this order: the special ones first; `row_state` applies to every DAG."""


def default_state(dag: ComputeDAG, isa: Isa, threads: int) -> LoopState:
    """A good state of a DAG's loops, without any measurement.

    Args:
        dag: What is computed.
        isa: The vectors and registers of the machine.
        threads: How many there are; with one no loop is parallel.
    """
    task = ScheduleTask(dag, isa, threads)
    for rule in RULES:
        state = _legal(rule, task)
        if state is not None:
            return state
    return LoopState.initial(dag)


def _legal(rule: Rule, task: ScheduleTask) -> LoopState | None:
    """What a rule says, if that can be lowered: a step that is refused costs speed, and not the kernel."""
    try:
        state = rule(task)
        if state is not None:
            infer_bound(task.dag, state)
    except UsageError:
        return None
    return state
