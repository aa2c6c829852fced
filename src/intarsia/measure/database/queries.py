"""Queries of the records, as statements with parameters that are bound when they run.

Records are ordered by cost, and by key for equal costs, so that results are the same everywhere.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Select, bindparam, func, select

from intarsia.measure.database.tables import RECORDS

_C: Final = RECORDS.c

RECORD_COLUMNS: Final = (_C.workload, _C.target, _C.host, _C.kind, _C.trace, _C.measurements)
"""Columns that a record is read from."""

ORDER: Final = (_C.cost, _C.key)

FIND: Final[Select[Any]] = select(*RECORD_COLUMNS).where(_C.key == bindparam("key"))
"""The record of a `key`."""

TOP: Final[Select[Any]] = (
    select(*RECORD_COLUMNS)
    .where(
        _C.workload == bindparam("workload"),
        _C.target == bindparam("target"),
        _C.host == bindparam("host"),
        _C.cost.is_not(None),
    )
    .order_by(*ORDER)
    .limit(bindparam("k"))
)
"""The `k` best of a `workload` on a `target` and a `host`."""

ALL: Final[Select[Any]] = select(*RECORD_COLUMNS).order_by(_C.key)
"""Every record."""

EVERY_CANDIDATE: Final[Select[Any]] = (
    select(*RECORD_COLUMNS)
    .where(_C.workload == bindparam("workload"))
    .order_by(_C.cost.is_(None), _C.cost, _C.key)
)
"""All records of a `workload`, the failures last."""


def best_per_workload(target: str | None) -> Select[Any]:
    """Return the query for the best record of each workload on a `host`: on one `target` or the best one."""
    where = [_C.host == bindparam("host"), _C.cost.is_not(None)]
    if target is not None:
        where.append(_C.target == bindparam("target"))
    ranked = select(_C.key, _rank(_C.workload)).where(*where).subquery()
    best = select(ranked.c.key).where(ranked.c.rank == 1)
    return select(*RECORD_COLUMNS).where(_C.key.in_(best)).order_by(_C.workload)


def _hints() -> Select[Any]:
    """Return the query for the best of each host, then the second of each, each candidate once."""
    where = (
        _C.workload == bindparam("workload"),
        _C.target == bindparam("target"),
        _C.host != bindparam("host"),
        _C.cost.is_not(None),
    )
    ranked = select(_C.key, _C.candidate, _C.host, _C.kind, _C.trace, _rank(_C.host)).where(*where).subquery()
    order = (ranked.c.rank, ranked.c.key)
    first = func.row_number().over(partition_by=ranked.c.candidate, order_by=order).label("first")
    chosen = select(ranked, first).subquery()
    columns = (chosen.c.host, chosen.c.kind, chosen.c.trace, chosen.c.rank)
    query = select(*columns).where(chosen.c.first == 1).order_by(chosen.c.rank, chosen.c.key)
    return query.limit(bindparam("k"))


def _rank(*group: ColumnElement[Any]) -> ColumnElement[int]:
    return func.row_number().over(partition_by=group, order_by=ORDER).label("rank")


HINTS: Final = _hints()
"""At most `k` candidates for a `workload` and a `target` that were good on other hosts than `host`."""
