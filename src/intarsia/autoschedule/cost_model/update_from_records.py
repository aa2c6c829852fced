"""Teaching a model what a log says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from intarsia.autoschedule.cost_model.cost_model import CostModel
from intarsia.autoschedule.task import SearchTask
from intarsia.autoschedule.task.record_cost import record_cost
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record
from intarsia.support.errors import UsageError


def update_from_records(model: CostModel, tasks: Sequence[SearchTask], records: Iterable[Record]) -> int:
    """Teach a model the records of tasks, a task at a time.

    Costs are the mean of those of a record, inf where it failed. Records of other tasks, and those whose
    history the task does not allow, are passed over.

    Returns:
        How many records it was taught.
    """
    by_key = {task.workload_key: task for task in tasks}
    found: dict[str, list[tuple[LoopState, float]]] = {}
    for record in records:
        task = by_key.get(record.task.workload_key)
        state = None if task is None else _replayed(task, record)
        if state is not None:
            found.setdefault(record.task.workload_key, []).append((state, record_cost(record)))
    for key, pairs in found.items():
        model.update(by_key[key], [state for state, _ in pairs], [cost for _, cost in pairs])
    return sum(map(len, found.values()))


def _replayed(task: SearchTask, record: Record) -> LoopState | None:
    try:
        return LoopState.replay(task.dag, record.steps)
    except UsageError:
        return None
