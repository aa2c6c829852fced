"""Remove records within a transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, func, or_, select

from intarsia.measure.database.answers import RemovedCounts
from intarsia.measure.database.queries import ORDER
from intarsia.measure.database.tables import HOSTS, MODELS, RECORDS, RUNS, WORKLOADS
from intarsia.support.errors import UsageError

_C = RECORDS.c


def remove(
    connection: Connection, keep_top: int | None, older_than: float | None, other_hosts: str | None
) -> RemovedCounts:
    """Remove the records that meet every given condition (see `Database.collect_garbage`).

    Raises:
        UsageError: There is no condition, or `keep_top` is negative.
    """
    conditions = _conditions(keep_top, older_than, other_hosts)
    records = connection.execute(delete(RECORDS).where(*conditions)).rowcount
    _remove_runs(connection, older_than, other_hosts)
    return RemovedCounts(
        records,
        _remove_unused(connection, WORKLOADS, _C.workload),
        _remove_unused(connection, HOSTS, _C.host),
    )


def _remove_runs(connection: Connection, older_than: float | None, other_hosts: str | None) -> None:
    """Remove runs of workloads without records, and runs that are too old or of another host."""
    reasons: list[ColumnElement[bool]] = [RUNS.c.workload.not_in(select(_C.workload))]
    if older_than is not None:
        reasons.append(RUNS.c.finished_at < older_than)
    if other_hosts is not None:
        reasons.append(RUNS.c.host != other_hosts)
    connection.execute(delete(RUNS).where(or_(*reasons)))
    connection.execute(delete(MODELS).where(MODELS.c.run.not_in(select(RUNS.c.key))))


def _conditions(
    keep_top: int | None, older_than: float | None, other_hosts: str | None
) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if older_than is not None:
        conditions.append(_C.measured_at < older_than)
    if other_hosts is not None:
        conditions.append(_C.host != other_hosts)
    if keep_top is not None:
        conditions.append(_C.key.not_in(_top_keys(keep_top)))
    if not conditions:
        raise UsageError("nothing says which records to remove", help="give at least one condition")
    return conditions


def _top_keys(count: int) -> Select[Any]:
    if count < 0:
        raise UsageError(f"cannot keep the best {count} records")
    group = (_C.workload, _C.target, _C.host)
    rank = func.row_number().over(partition_by=group, order_by=ORDER).label("rank")
    ranked = select(_C.key, rank).where(_C.cost.is_not(None)).subquery()
    return select(ranked.c.key).where(ranked.c.rank <= count)


def _remove_unused(connection: Connection, table: Table, used: ColumnElement[str]) -> int:
    return connection.execute(delete(table).where(table.c.digest.not_in(select(used)))).rowcount
