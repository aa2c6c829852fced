"""A database of each kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.postgresql_server import Server, programs, running_server

from intarsia.measure.database import Database

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server."""
    pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed")
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed: no initdb on PATH or in /usr/lib/postgresql")
    with running_server(folder) as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives a place for another empty database of the kind at each call."""

    def make() -> str:
        name = f"measurements_{next(NUMBERS)}"
        if request.param == "sqlite":
            return str(tmp_path / f"{name}.db")
        server: Server = request.getfixturevalue("server")
        server.run(f"CREATE DATABASE {name}")
        return server.url(name)

    return make


@pytest.fixture
def place(new_place: Callable[[], str]) -> str:
    """Where an empty database may be opened."""
    return new_place()


@pytest.fixture
def database(place: str) -> Iterator[Database]:
    """An empty database."""
    with Database.open(place) as opened:
        yield opened


@pytest.fixture
def other(new_place: Callable[[], str]) -> Iterator[Database]:
    """Another empty database of the same kind."""
    with Database.open(new_place()) as opened:
        yield opened
