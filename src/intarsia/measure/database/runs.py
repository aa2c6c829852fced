"""Store and read finished tuning runs by the digest of their request."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from intarsia.measure.database.connections import Connections
from intarsia.measure.database.damage import reading_row, stored_number, stored_text
from intarsia.measure.database.run_record import ModelRecord, RunRecord
from intarsia.measure.database.tables import MODELS, RUNS


def keep_run(connection: Connection, run: RunRecord) -> None:
    """Store a run; a run with the same key is replaced."""
    connection.execute(delete(RUNS).where(RUNS.c.key == run.key))
    connection.execute(insert(RUNS), [asdict(run)])


def run_of(connections: Connections, key: str) -> RunRecord | None:
    """Return the run with a key, or None."""
    return next(iter(connections.rows(_run, select(RUNS).where(RUNS.c.key == key))), None)


def newest_runs(connections: Connections) -> tuple[RunRecord, ...]:
    """Return all runs, the newest first."""
    return connections.rows(_run, select(RUNS).order_by(RUNS.c.finished_at.desc(), RUNS.c.key))


def keep_model(connection: Connection, model: ModelRecord) -> None:
    """Store the model of a run; an earlier model of the run is replaced."""
    connection.execute(delete(MODELS).where(MODELS.c.run == model.run))
    connection.execute(insert(MODELS), [{"run": model.run, "asked": model.request, "layers": model.layers}])


def models_of(connections: Connections, request: str, most: int) -> tuple[ModelRecord, ...]:
    """Return the models with the same request, those of the newest runs first."""
    query = select(MODELS).join(RUNS, RUNS.c.key == MODELS.c.run).where(MODELS.c.asked == request)
    return connections.rows(_model, query.order_by(RUNS.c.finished_at.desc(), RUNS.c.key).limit(most))


def _run(row: Row[Any]) -> RunRecord:
    with reading_row("a finished run"):
        key, workload, host, outcome = map(stored_text, (row.key, row.workload, row.host, row.outcome))
        return RunRecord(key, workload, host, stored_number(row.finished_at), outcome)


def _model(row: Row[Any]) -> ModelRecord:
    with reading_row("the model of a finished run"):
        return ModelRecord(*map(stored_text, (row.run, row.asked, row.layers)))
