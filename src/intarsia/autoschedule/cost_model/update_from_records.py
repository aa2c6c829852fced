"""Training a cost model from a log of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from intarsia.autoschedule.cost_model.cost_model import CostModel
from intarsia.autoschedule.task import SearchTask
from intarsia.autoschedule.task.record_cost import record_cost
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record
from intarsia.support.errors import UsageError


def update_from_records(model: CostModel, tasks: Sequence[SearchTask], records: Iterable[Record]) -> int:
    """Update a model with the records of tasks, one task at a time.

    The cost of a record is the mean of its costs, inf where it failed. Records of other tasks, and those with
    a
    history that is not possible for the task, are skipped.

    Returns:
        Number of records that the model was updated with.
    """
    by_key = {task.workload_key: task for task in tasks}
    measured: dict[str, list[tuple[LoopState, float]]] = {}
    for record in records:
        task = by_key.get(record.task.workload_key)
        state = None if task is None else _replay(task, record)
        if state is not None:
            measured.setdefault(record.task.workload_key, []).append((state, record_cost(record)))
    for key, pairs in measured.items():
        model.update(by_key[key], [state for state, _ in pairs], [cost for _, cost in pairs])
    return sum(map(len, measured.values()))


def _replay(task: SearchTask, record: Record) -> LoopState | None:
    try:
        return LoopState.replay(task.dag, record.steps)
    except UsageError:
        return None
