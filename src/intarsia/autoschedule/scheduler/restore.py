"""Restoring a task scheduler from a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from intarsia.autoschedule.scheduler.task_scheduler import TaskScheduler
from intarsia.autoschedule.task.record_cost import record_cost
from intarsia.native.loop_state.record import Record


def restore_from_records(
    scheduler: TaskScheduler, workload_keys: Sequence[str], records: Iterable[Record]
) -> int:
    """Restore a scheduler from the measurements of a log, in the order of the log.

    Args:
        scheduler: Scheduler before its first round.
        workload_keys: Workload keys of its tasks, in their order.
        records: Records of the log; those of other tasks are skipped.

    Returns:
        Number of records that were restored.
    """
    numbers = {key: number for number, key in enumerate(workload_keys)}
    costs: dict[int, list[float]] = {}
    for record in records:
        number = numbers.get(record.task.workload_key)
        if number is not None:
            costs.setdefault(number, []).append(record_cost(record))
    for number, task_costs in costs.items():
        scheduler.restore(number, task_costs)
    return sum(map(len, costs.values()))
