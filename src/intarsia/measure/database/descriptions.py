"""Store and read the descriptions of workloads and hosts by their digests."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from intarsia.measure.database.commits import batches, insert_new
from intarsia.measure.database.connections import Connections
from intarsia.measure.database.damage import reading_row, stored_json_object, stored_json_text
from intarsia.measure.database.rows import compact_json
from intarsia.measure.database.tables import HOSTS, WORKLOADS
from intarsia.support.errors import ArtifactError
from intarsia.target import Host


def insert_workload(connection: Connection, digest: str, name: str, program: str | None) -> None:
    """Insert the name and program text of a workload."""
    text = None if program is None else compact_json(program)
    row = {"digest": digest, "name": compact_json(name), "program": text}
    connection.execute(insert_new(connection, WORKLOADS), [row])


def insert_host(connection: Connection, host: Host) -> None:
    """Insert the description of a machine."""
    row = {"digest": host.digest, "description": compact_json(host.to_json())}
    connection.execute(insert_new(connection, HOSTS), [row])


def insert_descriptions(source: Connection, connection: Connection) -> None:
    """Copy all descriptions of another database."""
    for table in (WORKLOADS, HOSTS):
        rows = source.execute(select(table).order_by(table.c.digest)).mappings()
        for batch in batches(dict(row) for row in rows):
            connection.execute(insert_new(connection, table), batch)


def program_of(connections: Connections, workload: str) -> str | None:
    """Return the program text of a workload."""
    query = select(WORKLOADS.c.program).where(WORKLOADS.c.digest == workload)
    return next(iter(connections.rows(_program_of_row, query)), None)


def host_of(connections: Connections, digest: str) -> Host | None:
    """Return the machine of a digest; None also for a description in another version's format."""
    query = select(HOSTS.c.description).where(HOSTS.c.digest == digest)
    return next(iter(connections.rows(_host_of_row, query)), None)


def _program_of_row(row: Row[Any]) -> str | None:
    with reading_row("a workload"):
        return None if row.program is None else stored_json_text(row.program)


def _host_of_row(row: Row[Any]) -> Host | None:
    with reading_row("a host"):
        description = stored_json_object(row.description)
    try:
        return Host.from_json(description)
    except ArtifactError:
        return None
