"""Finished tuning runs: what was asked, as a digest, and what came of it."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select

from intarsia.measure.database.connections import Connections
from intarsia.measure.database.run_record import RunRecord
from intarsia.measure.database.tables import RUNS


def keep_run(connection: Connection, run: RunRecord) -> None:
    """Keep a run; one of the same key is replaced."""
    connection.execute(delete(RUNS).where(RUNS.c.key == run.key))
    connection.execute(insert(RUNS), [asdict(run)])


def run_of(connections: Connections, key: str) -> RunRecord | None:
    """The run of a key."""
    rows = connections.rows(select(RUNS).where(RUNS.c.key == key))
    return RunRecord(**rows[0]._mapping) if rows else None
