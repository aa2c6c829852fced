"""Export and import: a line with the format, then a line of JSON for each workload, host and record.

    {"format":"intarsia measurements","version":1}
    {"workload":{"digest":"7c...","name":"resnet50","program":null}}
    {"host":{"digest":"1f...","description":{"cpu_model":"...",...}}}
    {"record":{"workload":"7c...","target":"cpu -toolchain=native","host":"1f...","kind":"schedule",
     "trace":[],"measurements":[{"costs":[0.0123],"error":"ok","message":"","wall_seconds":1.5,
     "timestamp":1760000000.0,"max_error":2e-06}]}}

Equal databases give equal files, whatever the order of their commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO

from sqlalchemy import Connection, select

from intarsia.measure.database.answers import LineCounts, MergeCounts
from intarsia.measure.database.commits import BATCH, commit_batches, insert_new
from intarsia.measure.database.damage import (
    reading_row,
    stored_json_object,
    stored_json_text,
    stored_text,
)
from intarsia.measure.database.queries import ALL
from intarsia.measure.database.record import MeasureRecord
from intarsia.measure.database.rows import compact_json, plain_record, read_record, read_text, record_of
from intarsia.measure.database.tables import HOSTS, RECORDS, WORKLOADS
from intarsia.support.errors import DatabaseError
from intarsia.support.files import write_atomically

FORMAT: Final = "intarsia measurements"
VERSION: Final = 1
"""Version of the lines; the version of the tables changes independently."""


def export_lines(connection: Connection, path: Path, host: str | None = None) -> LineCounts:
    """Write all workloads, hosts and records, atomically.

    Args:
        connection: Connection within a transaction.
        path: Path of the file.
        host: Digest of a host: only its records are written, with their workloads; None for all.

    Raises:
        DamagedRowError: A row cannot be read.
        OutputError: The file cannot be written.
    """
    counts = {"workload": 0, "host": 0, "record": 0}
    with write_atomically(path) as temporary, temporary.open("w", encoding="ascii") as file:
        file.write(compact_json({"format": FORMAT, "version": VERSION}) + "\n")
        for kind, data in _items(connection, host):
            file.write(compact_json({kind: data}) + "\n")
            counts[kind] += 1
    return LineCounts(counts["workload"], counts["host"], counts["record"])


def _items(connection: Connection, only_host: str | None) -> Iterator[tuple[str, object]]:
    workloads, hosts, records = select(WORKLOADS), select(HOSTS), ALL
    if only_host is not None:
        records = ALL.where(RECORDS.c.host == only_host)
        measured_there = select(RECORDS.c.workload).where(RECORDS.c.host == only_host)
        workloads = workloads.where(WORKLOADS.c.digest.in_(measured_there))
        hosts = hosts.where(HOSTS.c.digest == only_host)
    for row in connection.execute(workloads.order_by(WORKLOADS.c.digest)):
        with reading_row("a workload"):
            program = None if row.program is None else stored_json_text(row.program)
            workload = {"digest": stored_text(row.digest), "name": stored_json_text(row.name)}
        yield "workload", {**workload, "program": program}
    for row in connection.execute(hosts.order_by(HOSTS.c.digest)):
        with reading_row("a host"):
            description = stored_json_object(row.description)
            host = {"digest": stored_text(row.digest), "description": description}
        yield "host", host
    for row in connection.execution_options(yield_per=BATCH).execute(records):
        yield "record", plain_record(record_of(row))


def import_lines(connection: Connection, path: Path) -> MergeCounts:
    """Add the records of a file, in an exclusive transaction.

    Raises:
        DatabaseError: The file cannot be read, or a line of it is bad; nothing of it may be committed.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return commit_batches(connection, _read_records(connection, path, file))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DatabaseError(f"cannot read {path}: {reason}", help="give the name of an export") from error


def _read_records(connection: Connection, path: Path, file: TextIO) -> Iterator[MeasureRecord]:
    """Read the records, and insert workloads and hosts on the way."""
    number = 1
    try:
        _check_header(file.readline())
        for number, line in enumerate(file, 2):  # noqa: B007 - the error has the number
            if (record := _read_line(connection, line)) is not None:
                yield record
    except (ValueError, RecursionError) as error:  # a line nested too deep is the file's fault as well
        raise DatabaseError(
            f"line {number} of {path} is bad: {error}",
            help="nothing was imported; export it again, or remove the line",
        ) from error


def _check_header(line: str) -> None:
    header = json.loads(line or "null")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f'it does not say "format":"{FORMAT}", so this is no export of a database')
    if header.get("version") != VERSION:
        raise ValueError(f"the export has version {header.get('version')!r}, expected {VERSION}")


def _read_line(connection: Connection, line: str) -> MeasureRecord | None:
    if not line.endswith("\n"):
        raise ValueError("the line is cut off")
    match json.loads(line):
        case {"record": data, **rest} if not rest:
            return read_record(data)
        case {"workload": dict(data), **rest} if not rest:
            connection.execute(insert_new(connection, WORKLOADS), [_workload_row(data)])
        case {"host": dict(data), **rest} if not rest:
            connection.execute(insert_new(connection, HOSTS), [_host_row(data)])
        case _:
            raise ValueError("it is neither a workload, a host nor a record")
    return None


def _workload_row(data: dict[str, Any]) -> dict[str, object]:
    program = None if data.get("program") is None else compact_json(read_text(data, "program"))
    return {"digest": _digest(data), "name": compact_json(read_text(data, "name")), "program": program}


def _host_row(data: dict[str, Any]) -> dict[str, object]:
    digest, description = _digest(data), data.get("description")
    if isinstance(description, dict):
        return {"digest": digest, "description": compact_json(description)}
    raise ValueError(f"a description is an object, unlike {description!r}")


def _digest(data: dict[str, Any]) -> str:
    digest = read_text(data, "digest")
    if not (digest and digest.isascii() and digest.isprintable()):
        raise ValueError(f"a digest is ASCII, unlike {digest!r}")
    return digest
