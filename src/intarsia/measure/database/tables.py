"""The tables, the same in SQLite and in PostgreSQL.

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
"""Table of the `schema_version`."""

WORKLOADS: Final = Table(
    "intarsia_workloads",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("program", Text),
)
"""Names and programs of workload digests, as far as they are known; both are JSON."""

HOSTS: Final = Table(
    "intarsia_hosts",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("description", Text, nullable=False),
)
"""Descriptions of host digests."""

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
"""One row for each record. The key is a digest of workload, target, host and candidate.

Cost (seconds, NULL for a failure), error and time are those of the whole record, from its measurements.
"""

RUNS: Final = Table(
    "intarsia_runs",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("workload", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("finished_at", Double, nullable=False),
    Column("outcome", Text, nullable=False),
)
"""One row for each finished run. The key is a digest of the request; the outcome is JSON.
"""

MODELS: Final = Table(
    "intarsia_models",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("asked", Text, nullable=False),
    Column("layers", Text, nullable=False),
    Index("intarsia_models_of_question", "asked"),
)
"""One row for each finished run with a plan for similar models; `run` is its key in the table of runs."""

LEASES: Final = Table(
    "intarsia_leases",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("until", Double, nullable=False),
)
"""One row for each record that a tuner measures at the moment; `until` is in seconds since 1970."""
