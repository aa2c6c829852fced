"""What can go wrong with a server: messages, and what was measured before is kept."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import create_engine, text
from tests.measure_records import HERE, TARGET, candidate, record
from tests.postgresql_server import PASSWORD, Server

from intarsia.measure.database import Database, MeasureRecord
from intarsia.measure.database.place import Place
from intarsia.support.errors import DatabaseError


def failure(function: Callable[[], object]) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        function()
    assert PASSWORD not in str(caught.value)
    assert "secret" not in str(caught.value)
    return caught.value


@pytest.fixture
def place(server: Server, request: pytest.FixtureRequest) -> str:
    """A database on the server, named after the test."""
    name = request.node.name.replace("test_", "")[:60]
    server.run(f"CREATE DATABASE {name}")
    return server.url(name)


def test_a_wrong_password(server: Server) -> None:
    error = failure(lambda: Database.open(server.url("postgres", password="secret")))
    assert error.problem.startswith(
        f"the database postgresql://tester:***@127.0.0.1:{server.port}/postgres refuses this user: "
    )
    assert error.problem.endswith('password authentication failed for user "tester"')
    assert error.help == "see that user and password in the URL are right"


def test_an_unknown_user(server: Server) -> None:
    error = failure(lambda: Database.open(server.url("postgres", user="nobody")))
    assert " refuses this user: " in error.problem


def test_an_unknown_database(server: Server) -> None:
    error = failure(lambda: Database.open(server.url("missing")))
    assert " does not exist on the server: " in error.problem
    assert error.problem.endswith('database "missing" does not exist')
    assert error.help == "create it first: createdb NAME"


def test_no_server() -> None:
    pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed")
    with socket.socket() as taken:  # bound but not listening: nobody else can be there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = failure(lambda: Database.open(f"postgresql://me:secret@127.0.0.1:{port}/name"))
    assert error.problem.startswith(
        f"the database postgresql://me:***@127.0.0.1:{port}/name cannot be reached: "
    )
    assert error.help == "see that the server runs, and that host and port are right"


def test_a_locked_table(place: str) -> None:
    holder = create_engine(Place.of(place).url)
    with Database.open(place, busy_seconds=0.1) as database, holder.connect() as connection:
        database.commit(record("before"))
        connection.execute(text("LOCK TABLE intarsia_records IN EXCLUSIVE MODE"))
        error = failure(lambda: database.commit(record("c")))
        assert " is locked by another process: " in error.problem
        connection.rollback()
        database.commit(record("c"))
        assert database.statistics().records == 2
    holder.dispose()


def test_lost_connections_are_made_again(server: Server, place: str) -> None:
    with Database.open(place) as database:
        database.commit(record("before"))
        name = Place.of(place).url.database
        server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        database.commit(record("after"))
        assert database.find("workload", TARGET, candidate("before"), HERE) == record("before")
        assert database.statistics().records == 2


def test_a_connection_that_is_lost_within_a_transaction(server: Server, place: str) -> None:
    name = Place.of(place).url.database
    with Database.open(place) as database:
        database.commit(record("before"))

        def records() -> Iterator[MeasureRecord]:
            yield from (record([number]) for number in range(600))
            server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            yield from (record([number]) for number in range(600, 1200))

        error = failure(lambda: database.commit_many(records()))
        assert " the connection" in error.problem
        assert database.statistics().records == 1


def test_a_user_without_rights(server: Server, place: str) -> None:
    server.run("CREATE ROLE reader LOGIN PASSWORD 'reading'")
    name = str(Place.of(place).url.database)
    server.run(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
    server.run(f"GRANT CONNECT ON DATABASE {name} TO reader")
    with Database.open(place) as database:
        database.commit(record("c"))
    error = failure(
        lambda: Database.open(server.url(name, user="reader", password="reading")).commit(record("d"))
    )
    assert " does not let this user do that: " in error.problem
    with Database.open(place) as database:
        assert database.statistics().records == 1
