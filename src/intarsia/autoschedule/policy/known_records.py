"""The records of a task in a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from intarsia.autoschedule.measuring.schedule_record import median_cost
from intarsia.autoschedule.population import replay_program
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record


class KnownRecord(NamedTuple):
    """A program of a log.

    Attributes:
        state: Program with the ranges of all loops.
        cost: Median of its costs up to here in seconds, those since its last confirmation; inf for a failure.
        is_confirmed: Whether the program has won a confirmation here.
    """

    state: LoopState
    cost: float
    is_confirmed: bool


def known_records(task: SearchTask, records: Iterable[Record]) -> Iterator[KnownRecord]:
    """Yield the programs of a task in a log with their costs, in the order of the log.

    Records of other workloads and target kinds are skipped, and so are records with
    other hardware or another layout option than the task, and histories that are impossible for the DAG. In
    logs
    of TVM the target is "llvm": their costs are of other code, so only `hints` reads their programs.

    Args:
        task: Search task.
        records: Records of the log.
    """
    working: dict[str, list[Record]] = {}
    for record in records:
        state = replay_program(task.dag, record.steps) if _is_of_task(record, task) else None
        if state is None:
            continue
        if record.result.error_no:
            yield KnownRecord(state, inf, is_confirmed=False)
            continue
        if record.is_confirmed:
            working.clear()
        same = working.setdefault(state.text, [])
        same.append(record)
        yield KnownRecord(state, median_cost(*same), record.is_confirmed)


def hints(task: SearchTask, records: Iterable[Record], count: int) -> tuple[LoopState, ...]:
    """Return the best programs of a task in a log of any machine, best first, as seeds without costs.

    Args:
        task: Search task.
        records: Records of the log; those of other workloads are skipped.
        count: Maximum number of programs.
    """
    programs: dict[str, tuple[float, LoopState]] = {}
    for record in records:
        cost = median_cost(record)
        if record.task.workload_key != task.workload_key or cost == inf:
            continue
        state = replay_program(task.dag, record.steps)
        if state is not None and cost < programs.get(state.text, (inf, state))[0]:
            programs[state.text] = cost, state
    return tuple(state for _, state in sorted(programs.values(), key=lambda timed: timed[0])[:count])


def _is_of_task(record: Record, task: SearchTask) -> bool:
    recorded = record.task
    is_here = recorded.hardware_params in (None, task.hardware.numbers)
    is_same = recorded.layout_rewrite_option in (None, task.layout_rewrite_option)
    is_kind = recorded.target.split()[:1] == [task.target.kind]
    return is_here and is_same and is_kind and recorded.workload_key == task.workload_key
