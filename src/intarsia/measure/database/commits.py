"""Write records within a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Insert, Select, Table, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from intarsia.measure.database.answers import MergeCounts
from intarsia.measure.database.damage import reading_row
from intarsia.measure.database.queries import RECORD_COLUMNS
from intarsia.measure.database.record import MeasureRecord
from intarsia.measure.database.rows import record_of, row_of
from intarsia.measure.database.tables import RECORDS

BATCH: Final = 500
"""Number of rows that one statement writes."""

T = TypeVar("T")

_CHANGEABLE: Final = ("cost", "error", "measured_at", "measurements")
_UPDATE: Final = (
    update(RECORDS)
    .where(RECORDS.c.key == bindparam("of_key"))
    .values({name: bindparam(f"new_{name}") for name in _CHANGEABLE})
)
_LOCKED: Final[Select[Any]] = select(RECORDS.c.key, *RECORD_COLUMNS).with_for_update()
_INSERTS: Final = {
    dialect: {table: insert(table).on_conflict_do_nothing() for table in RECORDS.metadata.sorted_tables}
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}


def insert_new(connection: Connection, table: Table) -> Insert:
    """Return the statement that inserts rows and skips existing ones."""
    return _INSERTS[connection.dialect.name][table]


def commit_one(connection: Connection, record: MeasureRecord) -> None:
    """Add a record, or add its measurements to the record with the same key."""
    row = row_of(record)
    if connection.execute(insert_new(connection, RECORDS), row).rowcount == 1:
        return
    (stored_row,) = connection.execute(_LOCKED.where(RECORDS.c.key == row["key"])).all()
    before = record_of(stored_row)
    if (after := _combined(before, record)) is not before:
        connection.execute(_UPDATE, [_changes(after)])


def commit_batches(connection: Connection, records: Iterable[MeasureRecord]) -> MergeCounts:
    """Add many records as `commit_one` does, in an exclusive transaction."""
    return sum((_commit_batch(connection, batch) for batch in batches(records)), MergeCounts())


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Split the items into lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _commit_batch(connection: Connection, records: Sequence[MeasureRecord]) -> MergeCounts:
    given: dict[str, MeasureRecord] = {}
    for record in records:
        key = record.key
        given[key] = record if key not in given else given[key].combined(record)
    # Rows are locked in the order of their keys, so that two transactions cannot deadlock.
    keys = sorted(given)
    statement = insert_new(connection, RECORDS).returning(RECORDS.c.key)
    added = set(connection.execute(statement, [row_of(given[key]) for key in keys]).scalars())
    present = [key for key in keys if key not in added]
    changes = [
        _changes(after)
        for key, before in _read_present(connection, present)
        if (after := _combined(before, given[key])) is not before
    ]
    if changes:
        connection.execute(_UPDATE, changes)
    return MergeCounts(len(added), len(changes), len(present) - len(changes))


def _combined(stored: MeasureRecord, record: MeasureRecord) -> MeasureRecord:
    """Return a record with the measurements of both; raises DamagedRowError if their fields differ."""
    with reading_row("a record"):
        return stored.combined(record)


def _read_present(connection: Connection, keys: Sequence[str]) -> list[tuple[str, MeasureRecord]]:
    if not keys:
        return []
    query = _LOCKED.where(RECORDS.c.key.in_(keys)).order_by(RECORDS.c.key)
    return [(row.key, record_of(row)) for row in connection.execute(query)]


def _changes(record: MeasureRecord) -> dict[str, Any]:
    row = row_of(record)
    return {"of_key": row["key"], **{f"new_{name}": row[name] for name in _CHANGEABLE}}
