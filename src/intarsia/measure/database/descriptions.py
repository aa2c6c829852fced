"""What the digests of workloads and hosts stand for."""

from __future__ import annotations

import json

from sqlalchemy import Connection, select

from intarsia.measure.database.commits import batches, insert_new
from intarsia.measure.database.connections import Connections
from intarsia.measure.database.rows import compact_json
from intarsia.measure.database.tables import HOSTS, WORKLOADS
from intarsia.support.errors import ArtifactError
from intarsia.target import Host


def insert_workload(connection: Connection, digest: str, name: str, program: str | None) -> None:
    """Tell name and program text of a workload."""
    text = None if program is None else compact_json(program)
    row = {"digest": digest, "name": compact_json(name), "program": text}
    connection.execute(insert_new(connection, WORKLOADS), [row])


def insert_host(connection: Connection, host: Host) -> None:
    """Tell what a machine is."""
    row = {"digest": host.digest, "description": compact_json(host.to_json())}
    connection.execute(insert_new(connection, HOSTS), [row])


def insert_descriptions(source: Connection, connection: Connection) -> None:
    """Tell all that another database was told."""
    for table in (WORKLOADS, HOSTS):
        rows = source.execute(select(table).order_by(table.c.digest)).mappings()
        for batch in batches(dict(row) for row in rows):
            connection.execute(insert_new(connection, table), batch)


def program_of(connections: Connections, workload: str) -> str | None:
    """The program text of a workload."""
    rows = connections.rows(select(WORKLOADS.c.program).where(WORKLOADS.c.digest == workload))
    return str(json.loads(rows[0].program)) if rows and rows[0].program is not None else None


def host_of(connections: Connections, digest: str) -> Host | None:
    """The machine of a digest; None also for one that another version of Intarsia has told in other words."""
    rows = connections.rows(select(HOSTS.c.description).where(HOSTS.c.digest == digest))
    try:
        return Host.from_json(json.loads(rows[0].description)) if rows else None
    except ArtifactError:
        return None
