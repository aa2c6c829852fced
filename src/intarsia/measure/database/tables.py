"""The tables, which are the same in SQLite and in PostgreSQL.

All texts are JSON in ASCII, digests or names, so that no encoding or collation of a server matters.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Double, Index, Integer, MetaData, Table, Text

METADATA: Final = MetaData()

META: Final = Table(
    "intarsia_meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),
)
"""`schema_version`."""

WORKLOADS: Final = Table(
    "intarsia_workloads",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("program", Text),
)
"""What the workload digests of records stand for, as far as it was told; name and program are JSON."""

HOSTS: Final = Table(
    "intarsia_hosts",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("description", Text, nullable=False),
)
"""What the host digests stand for."""

RECORDS: Final = Table(
    "intarsia_records",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("workload", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("candidate", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("trace", Text, nullable=False),
    Column("cost", Double),
    Column("error", Text, nullable=False),
    Column("measured_at", Double, nullable=False),
    Column("measurements", Text, nullable=False),
    Index("intarsia_records_ranking", "workload", "target", "host", "cost"),
    Index("intarsia_records_of_host", "host", "workload", "cost"),
)
"""One row a record. The key is a digest of workload, target, host and candidate. Cost (seconds, NULL for a
failure), error and time are those of the whole record, worked out from the measurements."""

RUNS: Final = Table(
    "intarsia_runs",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("workload", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("finished_at", Double, nullable=False),
    Column("outcome", Text, nullable=False),
)
"""One row a finished tuning run. The key is a digest of what was asked; the outcome is JSON, the driver's."""

MODELS: Final = Table(
    "intarsia_models",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("asked", Text, nullable=False),
    Column("layers", Text, nullable=False),
    Index("intarsia_models_of_question", "asked"),
)
"""One row for each finished run whose plan may help other models; `run` is its key in the table of runs."""
