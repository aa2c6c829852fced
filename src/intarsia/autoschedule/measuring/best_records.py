"""Select the best records of measured schedules from logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from intarsia.autoschedule.measuring.record_file import load_records
from intarsia.autoschedule.measuring.schedule_record import median_cost
from intarsia.autoschedule.measuring.workload_distance import calc_workload_dis_factor
from intarsia.native.loop_state.record import Record, record_to_text
from intarsia.native.loop_state.step_record import step_to_json
from intarsia.support.files import write_text
from intarsia.target.target import Target

_ALIASES: Final = MappingProxyType({"llvm": "cpu", "c": "cpu"})
"""Names of CPU targets in TVM's logs, each with the device kind that it stands for."""

Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DistilledCounts:
    """Numbers of records that `distill` has read and kept.

    Attributes:
        read: Number of records that were read from both files.
        kept: Number of records that were kept: the best of each workload on each target.
    """

    read: int
    kept: int


def target_kind(target: Target | str) -> str:
    """Return the device kind that a target's text begins with; TVM's "llvm" and "c" are "cpu"."""
    kind = str(target).partition(" ")[0]
    return _ALIASES.get(kind, kind)


def load_best_record(
    path: str | Path,
    workload_key: str | None = None,
    target: Target | str | None = None,
    include_compatible: bool = False,
) -> Record | None:
    """Return the record of the best schedule in a file; None if no schedule worked.

    The cost of a schedule that was measured several times is the median of all its costs. After a
    confirmation its winner is the best, until a schedule that is measured later is faster.

    Args:
        path: File of records.
        workload_key: Key of the workload; records of every workload count if it is not given.
        target: Target; records of its device kind count, of every kind if it is not given.
        include_compatible: Whether schedules of workloads of which this one is a multiple count too, with
            their costs multiplied by `calc_workload_dis_factor`.

    Raises:
        DatabaseError: The file cannot be read, or is damaged.
    """
    return best_record(load_records(path), workload_key, target, include_compatible)


def best_record(
    records: Iterable[Record],
    workload_key: str | None = None,
    target: Target | str | None = None,
    include_compatible: bool = False,
) -> Record | None:
    """Return the best record as `load_best_record` does, from records that were read already."""
    kind = None if target is None else target_kind(target)
    factors: dict[str, float] = {}
    best, least = None, inf
    for same in _candidates(records):
        record = same[-1]
        if kind is not None and target_kind(record.task.target) != kind:
            continue
        key = record.task.workload_key
        if key not in factors:
            factors[key] = _factor(workload_key, key, include_compatible)
        if factors[key] == inf:
            continue
        cost = median_cost(*same) * factors[key]
        if cost < least:
            best, least = record, cost
    return best


def distill(source: str | Path, destination: str | Path) -> DistilledCounts:
    """Keep the best record of each workload on each target.

    Args:
        source: File that is read.
        destination: File that is written, whole or not at all; the records that it holds already take part.

    Raises:
        DatabaseError: A file cannot be read, or is damaged.
        OutputError: The file system refused.
    """
    records = load_records(source)
    into = Path(destination)
    if into.exists():
        records = (*load_records(into), *records)
    best = best_of_each(records)
    write_text(into, "".join(record_to_text(record) for record in best))
    return DistilledCounts(len(records), len(best))


def best_of_each(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return the best record of each workload key and target, in the order in which these occur."""
    best: dict[Key, tuple[float, Record]] = {}
    for same in _candidates(records):
        record, cost = same[-1], median_cost(*same)
        key = record.task.workload_key, record.task.target
        if cost < best.get(key, (inf, record))[0]:
            best[key] = cost, record
    return tuple(record for _, record in best.values())


def _candidates(records: Iterable[Record]) -> Iterator[Sequence[Record]]:
    """Yield the records of each schedule that can be the best of its task.

    Records before the last confirmation count only if no schedule works from there on.
    """
    by_task: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        by_task.setdefault(_task(record), []).append(record)
    for same in by_task.values():
        marks = [number for number, record in enumerate(same) if record.is_confirmed]
        newest = same[marks[-1] :] if marks else same
        yield from _by_schedule(newest) or _by_schedule(same)


def _by_schedule(records: Iterable[Record]) -> list[list[Record]]:
    """Return the working records of each schedule whose newest record works."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(_identity(record), []).append(record)
    return [
        [record for record in same if not record.result.error_no]
        for same in groups.values()
        if not same[-1].result.error_no
    ]


def _identity(record: Record) -> tuple[str, ...]:
    return *_task(record), json.dumps([step_to_json(step) for step in record.steps])


def _task(record: Record) -> tuple[str, str, str]:
    task = record.task
    return task.workload_key, task.target, str(task.layout_rewrite_option)


def _factor(wanted: str | None, measured: str, include_compatible: bool) -> float:
    if wanted is None or wanted == measured:
        return 1.0
    return calc_workload_dis_factor(wanted, measured) if include_compatible else inf
