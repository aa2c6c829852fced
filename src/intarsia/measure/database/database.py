"""The database of measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import Row, delete, false

from intarsia.measure.database import garbage, json_lines, queries, summaries
from intarsia.measure.database.answers import (
    LineCounts,
    MergeCounts,
    RemovedCounts,
    Statistics,
    WorkloadSummary,
)
from intarsia.measure.database.commits import BATCH, commit_batches, commit_one
from intarsia.measure.database.connections import Connections
from intarsia.measure.database.damage import reading_row, stored_text
from intarsia.measure.database.descriptions import (
    host_of,
    insert_descriptions,
    insert_host,
    insert_workload,
    program_of,
)
from intarsia.measure.database.leases import end_leases, read_owners, take_leases
from intarsia.measure.database.place import Place
from intarsia.measure.database.record import Hint, MeasureRecord, record_key
from intarsia.measure.database.rows import checked_trace, record_of
from intarsia.measure.database.run_record import ModelRecord, RunRecord
from intarsia.measure.database.runs import keep_model, keep_run, models_of, newest_runs, run_of
from intarsia.measure.database.schema import prepare
from intarsia.measure.database.tables import META
from intarsia.measure.measure_input import Candidate
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.target import Host, Target

BUSY_SECONDS: Final = 30.0
"""Seconds that a transaction waits for those of other processes."""


class Database(ClosedOnExit):
    """Measurements of candidates, in an SQLite file or a PostgreSQL database.

    Any number of threads may use one object; any number of processes may open the same database. Each method
    is one
    transaction. Digests are those of `Workload`, `Host` and `Candidate`.

    Every method may raise DatabaseError: damaged, locked for too long, read-only, disk full, server out of
    reach. Earlier commits are not lost.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        create: bool = True,
        busy_seconds: float = BUSY_SECONDS,
        on_wait: Callable[[str], object] | None = None,
    ) -> Self:
        """Open a database, create a missing one, and migrate an older one.

        Args:
            where: A path, sqlite:///PATH (sqlite:////PATH for one from the root), or
                postgresql://USER:PASSWORD@SERVER:PORT/NAME.
            create: Whether a missing file is created.
            busy_seconds: Maximum wait for transactions of other processes, in seconds.
            on_wait: Called once, with a line for users, after a wait of several seconds.

        Raises:
            DatabaseError: It is not an Intarsia database, has a newer version, or any of the above.
        """
        location = Place.of(where)
        connections = Connections(location, create=create, busy_seconds=busy_seconds, on_wait=on_wait)
        try:
            prepare(connections)
        except BaseException:
            connections.close()
            raise
        return cls(connections)

    def close(self) -> None:
        """Close the connections; used again, it opens new ones."""
        self._connections.close()

    def check_writable(self) -> None:
        """Check that measurements can be added, before any long work; nothing is changed."""
        with self._connections.writing() as connection:  # of a read-only file, SQLite refuses only the write
            connection.execute(delete(META).where(false()))

    @property
    def place(self) -> str:
        """Path or URL, without password."""
        return str(self._connections.location)

    @property
    def server_url(self) -> str | None:
        """URL of a database on a server, with its password; None for a file, which is on this machine."""
        location = self._connections.location
        return None if location.path is not None else location.url.render_as_string(hide_password=False)

    def commit(self, record: MeasureRecord) -> None:
        """Add a record, or add its measurements to the record with the same key.

        Once it returns, the death of this process does not lose it.
        """
        with self._connections.writing() as connection:
            commit_one(connection, record)

    def commit_many(self, records: Iterable[MeasureRecord]) -> MergeCounts:
        """Add records as `commit` does, all or none."""
        with self._connections.writing(alone=True) as connection:
            return commit_batches(connection, records)

    def take_leases(self, keys: Iterable[str], owner: str, seconds: float) -> frozenset[str]:
        """Take leases on records that no other tuner measures now, or extend those of the owner.

        Args:
            keys: Keys of records.
            owner: Name of the tuner; no two have the same.
            seconds: Time after which others may take them.

        Returns:
            The keys whose leases the owner has now.
        """
        with self._connections.writing(alone=True) as connection:
            return take_leases(connection, keys, owner, seconds)

    def lease_owners(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the owners of the leases on records, by key."""
        with self._connections.snapshot() as connection:
            return read_owners(connection, keys)

    def end_leases(self, keys: Sequence[str], owner: str) -> None:
        """End leases of an owner; those of others stay."""
        with self._connections.writing(alone=True) as connection:
            end_leases(connection, keys, owner)

    def add_workload(self, digest: str, name: str, program: str | None = None) -> None:
        """Store the name and program of a workload's digest; an earlier entry stays."""
        with self._connections.writing() as connection:
            insert_workload(connection, digest, name, program)

    def add_host(self, host: Host) -> None:
        """Store the description of a host's digest."""
        with self._connections.writing() as connection:
            insert_host(connection, host)

    def program(self, workload: str) -> str | None:
        """Return the program text of a workload, or None if it is not stored."""
        return program_of(self._connections, workload)

    def host(self, digest: str) -> Host | None:
        """Return the machine of a digest, or None if it is not stored in a form that this version reads."""
        return host_of(self._connections, digest)

    def find(
        self, workload: str, target: Target | str, candidate: Candidate, host: str
    ) -> MeasureRecord | None:
        """Return the record of a candidate on this host; None if it was never measured."""
        key = record_key(workload, str(target), host, candidate.digest)
        return next(iter(self._connections.rows(record_of, queries.FIND, key=key)), None)

    def top_k(self, workload: str, target: Target | str, host: str, k: int) -> tuple[MeasureRecord, ...]:
        """Return the `k` candidates with the lowest costs, the best first, without failures."""
        parameters = {"workload": workload, "target": str(target), "host": host, "k": k}
        return self._connections.rows(record_of, queries.TOP, **parameters)

    def best(self, workload: str, target: Target | str, host: str) -> MeasureRecord | None:
        """Return the candidate with the lowest cost."""
        return next(iter(self.top_k(workload, target, host, 1)), None)

    def best_per_workload(self, host: str, target: Target | str | None = None) -> dict[str, MeasureRecord]:
        """Return the best record of each workload by its digest: on one target or on all."""
        text = None if target is None else str(target)
        parameters = {"host": host} if text is None else {"host": host, "target": text}
        records = self._connections.rows(record_of, queries.best_per_workload(text), **parameters)
        return {record.workload: record for record in records}

    def records_of(self, workload: str) -> tuple[MeasureRecord, ...]:
        """Return all records of a workload, on every target and host: by cost, failures last.

        They are for display: costs of different hosts and targets do not compare.
        """
        return self._connections.rows(record_of, queries.EVERY_CANDIDATE, workload=workload)

    def hints(self, workload: str, target: Target | str, k: int, except_host: str) -> tuple[Hint, ...]:
        """Return at most `k` candidates that were good on other machines, to be measured first on this one.

        The best of each machine come first, then the second of each; each candidate once.
        """
        parameters = {"workload": workload, "target": str(target), "host": except_host, "k": k}
        return self._connections.rows(_hint, queries.HINTS, **parameters)

    def keep_run(self, run: RunRecord) -> None:
        """Store a finished tuning run; an earlier run with the same key is replaced."""
        with self._connections.writing() as connection:
            keep_run(connection, run)

    def find_run(self, key: str) -> RunRecord | None:
        """Return the finished tuning run with a key, or None."""
        return run_of(self._connections, key)

    def runs(self) -> tuple[RunRecord, ...]:
        """Return all finished tuning runs, the newest first."""
        return newest_runs(self._connections)

    def keep_model(self, model: ModelRecord) -> None:
        """Store the model of a run, so that runs of similar models find it."""
        with self._connections.writing() as connection:
            keep_model(connection, model)

    def find_models(self, request: str, most: int) -> tuple[ModelRecord, ...]:
        """Return the models with the same request, those of the newest finished runs first.

        Args:
            request: Digest of the request without the model and the effort.
            most: Maximum number of models.
        """
        return models_of(self._connections, request, most)

    def merge(self, other: Database) -> MergeCounts:
        """Add all measurements of another database; a second merge changes nothing."""
        with other._connections.snapshot() as source, self._connections.writing(alone=True) as connection:
            insert_descriptions(source, connection)
            rows = source.execution_options(yield_per=BATCH).execute(queries.ALL)
            return commit_batches(connection, other._records(rows))

    def _records(self, rows: Iterable[Row[Any]]) -> Iterator[MeasureRecord]:
        """Read the records of rows; errors name this database."""
        with self._connections.translating_errors():
            yield from map(record_of, rows)

    def export_lines(self, path: Path, host: str | None = None) -> LineCounts:
        """Write all measurements as JSON lines, atomically.

        Finished runs are left out: with the measurements, a run is repeated without measuring.

        Args:
            path: Path of the file.
            host: Digest of the only host to write the measurements of; None for all.

        Raises:
            OutputError: The file cannot be written.
        """
        with self._connections.snapshot() as connection:
            return json_lines.export_lines(connection, path, host)

    def import_lines(self, path: Path) -> MergeCounts:
        """Add the measurements of an export; nothing if a line is bad."""
        with self._connections.writing(alone=True) as connection:
            return json_lines.import_lines(connection, path)

    def collect_garbage(
        self,
        *,
        keep_top: int | None = None,
        older_than: float | None = None,
        other_hosts: str | None = None,
    ) -> RemovedCounts:
        """Remove the records that meet all conditions, and workloads and hosts without records.

        Finished runs go with the last record of their workload, or if they are as old or of such a host.

        Args:
            keep_top: Number of best records of each workload, target and host that stay; failures do not
                count.
            older_than: Upper bound of the last measurement, in seconds since 1970 (UTC).
            other_hosts: Digest of the host that keeps its records.

        Raises:
            UsageError: No condition is given.
        """
        with self._connections.writing(alone=True) as connection:
            removed = garbage.remove(connection, keep_top, older_than, other_hosts)
        if removed.records:
            self._connections.compact()
        return removed

    def statistics(self) -> Statistics:
        """Count everything in the database."""
        return summaries.statistics(self._connections)

    def summaries(self) -> tuple[WorkloadSummary, ...]:
        """Summarise the records of each workload on each target and host; the newest first."""
        return summaries.workload_summaries(self._connections)


def _hint(row: Row[Any]) -> Hint:
    with reading_row("a record"):
        return Hint(stored_text(row.host), stored_text(row.kind), checked_trace(row.trace), row.rank)
