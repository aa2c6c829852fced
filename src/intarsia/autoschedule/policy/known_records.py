"""What a log knows of a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from intarsia.autoschedule.measuring.schedule_record import median_cost
from intarsia.autoschedule.population import completed
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record


def known_records(task: SearchTask, records: Iterable[Record]) -> Iterator[tuple[LoopState, float]]:
    """The programs of a task in a log with their costs, in the order of the log.

    Records of other workloads and of other kinds of targets are passed over, and so are those that name
    other hardware or another layout option than the task, and histories that the DAG does not allow. In logs
    that TVM wrote the target is "llvm": their costs are those of other code, and their programs `hints`.

    Args:
        task: What is searched.
        records: Of the log.

    Yields:
        A program with the ranges of all loops, and the median of its costs in seconds, inf if it failed.
    """
    for record in records:
        if not _is_of_task(record, task):
            continue
        state = completed(task.dag, record.steps)
        if state is not None:
            yield state, median_cost(record)


def hints(task: SearchTask, records: Iterable[Record], count: int) -> tuple[LoopState, ...]:
    """The best programs of a task in a log of any machine, best first: where to begin, not what they cost.

    Args:
        task: What is searched.
        records: Of the log; those of other workloads are passed over.
        count: How many programs, at most.
    """
    found: dict[str, tuple[float, LoopState]] = {}
    for record in records:
        cost = median_cost(record)
        if record.task.workload_key != task.workload_key or cost == inf:
            continue
        state = completed(task.dag, record.steps)
        if state is not None and cost < found.get(state.text, (inf, state))[0]:
            found[state.text] = cost, state
    return tuple(state for _, state in sorted(found.values(), key=lambda each: each[0])[:count])


def _is_of_task(record: Record, task: SearchTask) -> bool:
    given = record.task
    is_here = given.hardware_params in (None, task.hardware.numbers)
    is_same = given.layout_rewrite_option in (None, task.layout_rewrite_option)
    is_kind = given.target.split()[:1] == [task.target.kind]
    return is_here and is_same and is_kind and given.workload_key == task.workload_key
