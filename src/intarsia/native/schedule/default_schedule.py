"""The default schedule of a DAG, without search: the first rule that applies, else plain loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.attention import attention_state
from intarsia.native.schedule.block_products import block_product_state
from intarsia.native.schedule.blocked import blocked_state
from intarsia.native.schedule.channels_first import channels_first_state
from intarsia.native.schedule.channels_last import channels_last_state
from intarsia.native.schedule.gemm import gemm_state
from intarsia.native.schedule.row_schedule import row_state
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.support.errors import UsageError

Rule: TypeAlias = Callable[[ScheduleTask], LoopState | None]
"""Function from a task to the state of its DAG; None where the rule does not apply.

Each rule has a separate file, named after its subject, and is listed in RULES below. It starts from
`LoopState.initial(task.dag)`, refers to stages by name (steps change their numbers), and may use
`inlining.with_inlined`, and `stage_loops.with_loops` for other stages.
"""

RULES: Final[tuple[Rule, ...]] = (
    blocked_state,
    block_product_state,
    attention_state,
    gemm_state,
    channels_last_state,
    channels_first_state,
    row_state,
)
"""Rules in order of preference: special ones first; `row_state` applies to every DAG."""


def default_state(dag: ComputeDAG, isa: Isa, threads: int) -> LoopState:
    """Return a good state of a DAG's loops, without any measurement.

    Args:
        dag: DAG before any step.
        isa: Instruction set of the machine, with its caches.
        threads: Number of threads; with one no loop is parallel.
    """
    task = ScheduleTask(dag, isa, threads)
    for rule in RULES:
        state = _legal(rule, task)
        if state is not None:
            return state
    return LoopState.initial(dag)


def _legal(rule: Rule, task: ScheduleTask) -> LoopState | None:
    """Return the state of a rule; None if it cannot be lowered, so that the next rule applies."""
    try:
        state = rule(task)
        if state is not None:
            infer_bound(task.dag, state)
    except UsageError:
        return None
    return state
