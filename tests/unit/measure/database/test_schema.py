"""Versions of the tables, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from tests.measure_records import HERE, TARGET, candidate, record, worked
from tests.postgresql_server import Server

from intarsia.measure.database import Database, ModelRecord, RunRecord, schema
from intarsia.measure.database.place import Place
from intarsia.measure.database.rows import plain_record, row_of
from intarsia.measure.database.tables import META, METADATA, RECORDS
from intarsia.support.errors import DatabaseError

pytestmark = pytest.mark.quick_tests(9, also=["test_a_version_that_is_too_old[sqlite]"])


def execute(place: str, *statements: str) -> None:
    engine = create_engine(Place.of(place).url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


@pytest.fixture
def old(place: str) -> str:
    """A database as it might have been before version 1: each record as JSON in a row of one table."""
    execute(
        place,
        "CREATE TABLE intarsia_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
        "INSERT INTO intarsia_meta VALUES ('schema_version', 0)",
        "CREATE TABLE old_records (document TEXT NOT NULL)",
    )
    engine = create_engine(Place.of(place).url)
    with engine.begin() as connection:
        for number in range(3):
            document = plain_record(record(number, worked(number + 1.0)))
            connection.execute(
                text("INSERT INTO old_records VALUES (:document)"), {"document": json.dumps(document)}
            )
    engine.dispose()
    return place


def upgrade(connection: Connection) -> None:
    """Version 0 -> 1."""
    from intarsia.measure.database.rows import read_record

    METADATA.create_all(connection)
    for (document,) in connection.execute(text("SELECT document FROM old_records")).all():
        connection.execute(RECORDS.insert(), row_of(read_record(json.loads(document))))
    connection.execute(text("DROP TABLE old_records"))


def test_an_old_database_is_brought_up_to_date_with_all_that_is_in_it(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, 0: upgrade})
    with Database.open(old) as database:
        found = database.top_k("workload", TARGET, HERE, 9)
        assert [each.candidate.trace for each in found] == [0, 1, 2]
        assert database.statistics().schema_version == schema.VERSION
    monkeypatch.setattr(schema, "MIGRATIONS", {})  # nothing is left to do
    with Database.open(old) as database:
        assert database.find("workload", TARGET, candidate(1), HERE) == record(1, worked(2.0))


def test_a_migration_that_fails_changes_nothing(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(connection: Connection) -> None:
        upgrade(connection)
        raise KeyError("the migration has a mistake")

    monkeypatch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, 0: failing})
    with pytest.raises(KeyError):
        Database.open(old)
    monkeypatch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, 0: upgrade})
    with Database.open(old) as database:
        assert database.statistics().records == 3


def test_several_versions_are_gone_through(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database.open(place) as database:
        database.commit(record("c"))

    def step(number: int) -> Callable[[Connection], None]:
        def add_column(connection: Connection) -> None:
            column = f"extra_{number} INTEGER NOT NULL DEFAULT {number}"
            connection.execute(text(f"ALTER TABLE intarsia_records ADD COLUMN {column}"))

        return add_column

    version = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", version + 2)
    monkeypatch.setattr(schema, "MIGRATIONS", {version: step(1), version + 1: step(2)})
    with Database.open(place) as database:
        assert database.find("workload", TARGET, candidate(), HERE) == record("c")
    engine = create_engine(Place.of(place).url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT extra_1, extra_2 FROM intarsia_records")).one() == (1, 2)
        assert connection.execute(META.select()).one() == ("schema_version", version + 2)
    engine.dispose()


def test_a_newer_version_is_refused_and_left_alone(place: str) -> None:
    with Database.open(place) as database:
        database.commit(record("c"))
        shown = database.place
    execute(place, "UPDATE intarsia_meta SET value = 5")
    with pytest.raises(DatabaseError) as caught:
        Database.open(place)
    assert str(caught.value) == (
        f"the database {shown} has version 5, expected at most 4\n"
        "help: it was made by a newer Intarsia: update this one, or use another database"
    )
    execute(place, "UPDATE intarsia_meta SET value = 4")
    with Database.open(place) as database:
        assert database.statistics().records == 1


def test_a_version_that_is_too_old(old: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        Database.open(old)
    assert "has version 0, expected 4" in caught.value.problem
    assert caught.value.help == "this Intarsia cannot bring it up to date: use another database"


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    execute(str(path), "CREATE TABLE books (title TEXT)")
    before = path.read_bytes()
    with pytest.raises(DatabaseError) as caught:
        Database.open(path)
    assert str(caught.value) == (
        f"the database {path} is of another program: it has a table 'books'\n"
        "help: give the name of another database or of a new file"
    )
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_server_may_have_tables_of_others(server: Server) -> None:
    server.run("CREATE DATABASE shared")
    execute(server.url("shared"), "CREATE TABLE books (title TEXT)")
    with Database.open(server.url("shared")) as database:
        database.commit(record("c"))
        assert database.statistics().records == 1


OLDEST = "UPDATE intarsia_meta SET value = 1"


def test_the_first_version_gets_a_table_of_finished_runs(place: str) -> None:
    """Version 1, as it was released: the same tables but for that one and that of models."""
    with Database.open(place) as database:
        database.commit(record("c"))
    execute(place, "DROP TABLE intarsia_runs", "DROP TABLE intarsia_models", OLDEST)
    run = RunRecord("question", "workload", HERE, 10.0, "{}")
    with Database.open(place) as database:
        assert database.find("workload", TARGET, candidate(), HERE) == record("c")
        database.keep_run(run)
        assert database.find_run("question") == run


def test_the_second_version_gets_a_table_of_models(place: str) -> None:
    """Version 2, as it was released: the same tables but for that one."""
    run, model = RunRecord("question", "workload", HERE, 10.0, "{}"), ModelRecord("question", "asked", "a b")
    with Database.open(place) as database:
        database.keep_run(run)
    execute(place, "DROP TABLE intarsia_models", "UPDATE intarsia_meta SET value = 2")
    with Database.open(place) as database:
        assert database.find_run("question") == run
        database.keep_model(model)
        assert database.find_models("asked", 5) == (model,)
