"""Application of the best schedule of a log."""

from __future__ import annotations

from pathlib import Path

from intarsia.autoschedule.measuring import load_best_record
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState, print_python_code_from_state
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.lowering import infer_bound
from intarsia.native.schedule import ScheduledDag, with_state
from intarsia.support.errors import DatabaseError


def apply_best(
    task: SearchTask,
    log: str | Path,
    *,
    include_compatible: bool = False,
    option: LayoutRewriteOption | None = None,
) -> ScheduledDag:
    """Apply the best schedule of a log to a task, ready for `lower` (SearchTask.apply_best of TVM).

    Args:
        task: Search task.
        log: A v0.6 log.
        include_compatible: Whether schedules of smaller workloads of the same name count too.
        option: Layout rewrite of placeholders with a free layout; None for that of the task.

    Raises:
        DatabaseError: The log is damaged, or has no schedule of the task that works.
        IllegalStepError: The task does not allow the best schedule.
    """
    chosen = task.layout_rewrite_option if option is None else option
    return with_state(task.dag, _best_state(task, log, include_compatible), chosen)


def print_best(task: SearchTask, log: str | Path, *, include_compatible: bool = False) -> str:
    """Return the best schedule of a log as Python code (SearchTask.print_best of TVM).

    Args:
        task: Search task.
        log: A v0.6 log.
        include_compatible: Whether schedules of smaller workloads of the same name count too.

    Raises:
        DatabaseError: As of `apply_best`.
        IllegalStepError: As of `apply_best`.
    """
    return print_python_code_from_state(_best_state(task, log, include_compatible))


def _best_state(task: SearchTask, log: str | Path, include_compatible: bool) -> LoopState:
    record = load_best_record(log, task.workload_key, task.target, include_compatible)
    if record is None:
        raise DatabaseError(
            f"{log} has no schedule of workload {task.workload_key:.60} for {task.target.kind} that works",
            help="tune the task first, with this file as its log",
        )
    return infer_bound(task.dag, LoopState.replay(task.dag, record.steps))
