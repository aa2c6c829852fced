"""Going on where a log ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from intarsia.autoschedule.scheduler.task_scheduler import TaskScheduler
from intarsia.autoschedule.task.record_cost import record_cost
from intarsia.native.loop_state.record import Record


def restore_from_records(
    scheduler: TaskScheduler, workload_keys: Sequence[str], records: Iterable[Record]
) -> int:
    """Count what a log says was measured, in the order of the log.

    Args:
        scheduler: Before its first round.
        workload_keys: Of its tasks, in their order.
        records: Of the log; those of other tasks are passed over.

    Returns:
        How many records were counted.
    """
    numbers = {key: number for number, key in enumerate(workload_keys)}
    costs: dict[int, list[float]] = {}
    for record in records:
        number = numbers.get(record.task.workload_key)
        if number is not None:
            costs.setdefault(number, []).append(record_cost(record))
    for number, found in costs.items():
        scheduler.restore(number, found)
    return sum(map(len, costs.values()))
