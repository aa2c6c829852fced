"""Summaries and counts of all records."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import Connection, Row, func, select, text

from intarsia.measure.database.answers import Statistics, WorkloadSummary
from intarsia.measure.database.connections import Connections
from intarsia.measure.database.damage import reading_row, stored_json_text, stored_number, stored_text
from intarsia.measure.database.schema import VERSION
from intarsia.measure.database.tables import RECORDS, WORKLOADS
from intarsia.measure.measure_result import MeasureError

_C = RECORDS.c


def workload_summaries(connections: Connections) -> tuple[WorkloadSummary, ...]:
    """Summarise the records of each workload, target and host; the newest first."""
    group = (_C.workload, _C.target, _C.host)
    counts = (
        func.count().label("records"),
        func.count().filter(_C.error != MeasureError.OK.value).label("failed"),
        func.min(_C.cost).label("best"),
        func.max(_C.measured_at).label("newest"),
    )
    grouped = select(*group, *counts).group_by(*group).subquery()
    joined = grouped.outerjoin(WORKLOADS, WORKLOADS.c.digest == grouped.c.workload)
    unsorted = connections.rows(_summary, select(grouped, WORKLOADS.c.name).select_from(joined))
    return tuple(sorted(unsorted, key=lambda item: (-item.newest, item.workload, item.target, item.host)))


def _summary(row: Row[Any]) -> WorkloadSummary:
    with reading_row("a workload"):
        return WorkloadSummary(
            stored_text(row.workload),
            "" if row.name is None else stored_json_text(row.name),
            stored_text(row.target),
            stored_text(row.host),
            row.records,
            row.failed,
            math.inf if row.best is None else stored_number(row.best),
            stored_number(row.newest),
        )


def statistics(connections: Connections) -> Statistics:
    """Count everything in a database."""
    with connections.snapshot() as connection:
        totals = connection.execute(
            select(
                func.count(),
                func.count(_C.workload.distinct()),
                func.count(_C.host.distinct()),
                func.min(_C.measured_at),
                func.max(_C.measured_at),
            )
        ).one()
        kinds = connection.execute(select(_C.error, func.count()).group_by(_C.error)).all()
        size = _bytes(connections, connection)
        with reading_row("a record"):
            counts = [(MeasureError(kind), count) for kind, count in kinds]
            records, workloads, hosts, *times = totals
            oldest, newest = (None if time is None else stored_number(time) for time in times)
    by_error = sorted(counts, key=lambda item: (-item[1], item[0]))
    return Statistics(
        str(connections.location), VERSION, records, tuple(by_error), workloads, hosts, oldest, newest, size
    )


def _bytes(connections: Connections, connection: Connection) -> int:
    if connections.is_sqlite:
        pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        return int(connection.execute(text(pages)).scalar_one())
    sizes = " + ".join(f"pg_total_relation_size('{table.name}')" for table in RECORDS.metadata.sorted_tables)
    return int(connection.execute(text(f"SELECT {sizes}")).scalar_one())
