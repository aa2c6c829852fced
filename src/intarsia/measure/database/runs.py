"""Finished tuning runs: what was asked, as a digest, and what came of it."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select

from intarsia.measure.database.connections import Connections
from intarsia.measure.database.run_record import ModelRecord, RunRecord
from intarsia.measure.database.tables import MODELS, RUNS


def keep_run(connection: Connection, run: RunRecord) -> None:
    """Keep a run; one of the same key is replaced."""
    connection.execute(delete(RUNS).where(RUNS.c.key == run.key))
    connection.execute(insert(RUNS), [asdict(run)])


def run_of(connections: Connections, key: str) -> RunRecord | None:
    """The run of a key."""
    rows = connections.rows(select(RUNS).where(RUNS.c.key == key))
    return RunRecord(**rows[0]._mapping) if rows else None


def keep_model(connection: Connection, model: ModelRecord) -> None:
    """Keep the model of a run; that of the same run is replaced."""
    connection.execute(delete(MODELS).where(MODELS.c.run == model.run))
    connection.execute(insert(MODELS), [asdict(model)])


def models_of(connections: Connections, asked: str, most: int) -> tuple[ModelRecord, ...]:
    """The models of which the same was asked, those of the newest runs first."""
    query = select(MODELS).join(RUNS, RUNS.c.key == MODELS.c.run).where(MODELS.c.asked == asked)
    rows = connections.rows(query.order_by(RUNS.c.finished_at.desc(), RUNS.c.key).limit(most))
    return tuple(ModelRecord(**row._mapping) for row in rows)
