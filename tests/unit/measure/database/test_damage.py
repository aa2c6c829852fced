"""Rows with values that Intarsia does not write are an error for people, whoever reads them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.measure_records import HERE, TARGET, candidate, record, worked

from intarsia.measure.database import Database, ModelRecord, RunRecord
from intarsia.measure.database.tables import META, METADATA
from intarsia.support.errors import DatabaseError
from intarsia.target import Host

pytestmark = pytest.mark.quick_tests(
    9,
    also=[
        "test_a_damaged_value_is_named[intarsia_hosts.description-host-{garbage]",
        "test_another_table_beside_those_of_intarsia_is_left_alone",
    ],
)

READERS: dict[str, Callable[[Database], object]] = {
    "statistics": lambda database: database.statistics(),
    "summaries": lambda database: database.summaries(),
    "export": lambda database: database.export_lines(Path("lines.jsonl")),
    "find": lambda database: database.find("workload", TARGET, candidate("c"), HERE),
    "best": lambda database: database.best_per_workload(HERE),
    "records": lambda database: database.records_of("workload"),
    "hints": lambda database: database.hints("workload", TARGET, 9, "elsewhere"),
    "program": lambda database: database.program("workload"),
    "host": lambda database: database.host(HERE),
    "run": lambda database: database.find_run("key"),
    "models": lambda database: database.find_models("asked", 9),
    "commit": lambda database: database.commit(record("c", worked(3.0))),
    "leases": lambda database: database.take_leases(["key"], "owner", 1.0),
    "merge": lambda database: database.merge(database),
}
FOUND_BY = {
    "intarsia_workloads.name": ("summaries", "export"),
    "intarsia_workloads.program": ("export", "program"),
    "intarsia_hosts.description": ("export", "host"),
    "intarsia_records.error": ("statistics",),
    "intarsia_records.trace": ("export", "find", "best", "records", "hints", "commit"),
    "intarsia_records.measurements": ("export", "find", "best", "records", "commit"),
    "intarsia_records.measured_at": ("statistics", "summaries"),
    "intarsia_runs.finished_at": ("run",),
}
"""What reads a column whose texts or numbers have a form."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with a row in each table."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.db"
    with Database.open(path) as database:
        database.add_workload("workload", "name", "program")
        database.add_host(Host.detect())
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE intarsia_hosts SET digest = ?", [HERE])
            connection.commit()
        database.commit(record("c"))
        database.keep_run(RunRecord("key", "workload", HERE, 1.0, "{}"))
        database.keep_model(ModelRecord("key", "asked", "layers"))
    return path


def damage(path: Path, column: str, value: str | bytes) -> None:
    table, _, name = column.partition(".")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE {table} SET {name} = ?", [value])
        connection.commit()


DAMAGED = [
    (name, each, value)
    for name, found in FOUND_BY.items()
    for each in found
    for value in ("{garbage", b"\xff")
]
DAMAGED += [
    ("intarsia_records.measurements", "find", value) for value in ("[]", "3", '[{"costs": 1}]', "[" * 100_000)
]


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize(("column", "reader", "value"), DAMAGED)
def test_a_damaged_value_is_named(path: Path, column: str, reader: str, value: str | bytes) -> None:
    damage(path, column, value)
    with Database.open(path) as database, pytest.raises(DatabaseError) as caught:
        READERS[reader](database)
    assert caught.value.problem.startswith(f"the database {path} is damaged: ")
    assert (
        caught.value.help == "something else has changed it: restore it, or move it aside and measure again"
    )


def test_a_damaged_version_is_named(path: Path) -> None:
    damage(path, "intarsia_meta.value", "{garbage")
    with pytest.raises(DatabaseError, match="is damaged: the version of the tables cannot be read: "):
        Database.open(path)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["{garbage", b"\xff\x00", "", "[null]"])
@pytest.mark.parametrize("table", list(METADATA.tables))
def test_no_damaged_value_is_an_internal_error(path: Path, table: str, value: str | bytes) -> None:
    names = [column.name for column in METADATA.tables[table].columns]
    original, problems = path.read_bytes(), list[str]()
    for name in names:
        path.write_bytes(original)
        damage(path, f"{table}.{name}", value)
        for read in READERS.values():
            try:
                with Database.open(path) as database:
                    read(database)
            except DatabaseError as error:
                problems.append(error.problem)
    assert all(problem.startswith(f"the database {path} ") for problem in problems)


def test_a_damaged_row_of_another_database_is_not_said_to_be_of_this_one(path: Path) -> None:
    damage(path, "intarsia_records.measurements", "{garbage")
    with Database.open(path) as source, Database.open(path.with_name("b.db")) as database:
        with pytest.raises(DatabaseError) as caught:
            database.merge(source)
        assert caught.value.problem.startswith(f"the database {path} is damaged: a record cannot be read: ")
        assert database.statistics().records == 0


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("table", list(METADATA.tables))
def test_a_missing_table_is_named(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TABLE {table}")
        connection.commit()
    problems = set()
    for read in READERS.values():
        try:
            with Database.open(path) as database:
                read(database)
        except DatabaseError as error:
            problems.add(error.problem)
    assert problems == {f"the database {path} lacks a part that Intarsia made: no such table: {table}"}


def test_another_table_beside_those_of_intarsia_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE others (a TEXT)")
        connection.execute(f"DROP TABLE {META.name}")
        connection.commit()
    with pytest.raises(DatabaseError, match=f"no such table: {META.name}"):
        Database.open(path)
