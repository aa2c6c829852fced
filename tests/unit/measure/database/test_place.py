"""Which database a text means."""

from __future__ import annotations

from pathlib import Path

import pytest

from intarsia.measure.database.place import Place
from intarsia.support.errors import DatabaseError


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("a.db", "a.db"),
        (Path("folder/a.db"), "folder/a.db"),
        ("sqlite:///a b.db", "a b.db"),
        ("sqlite:////root/a.db", "/root/a.db"),
        ("50%?.db", "50%?.db"),
    ],
)
def test_files(where: str | Path, path: str) -> None:
    place = Place.of(where)
    assert place.path == Path(path)
    assert str(place) == path


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_servers(scheme: str) -> None:
    place = Place.of(f"{scheme}://me:secret%40@server:5433/name?sslmode=require")
    assert place.path is None
    assert place.url.drivername == "postgresql+psycopg"
    assert (place.url.password, place.url.port, place.url.query["sslmode"]) == ("secret@", 5433, "require")
    assert str(place) == "postgresql://me:***@server:5433/name?sslmode=require"


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("", "the database has no file, so that it would not last"),
        (":memory:", "the database has no file, so that it would not last"),
        ("sqlite://", "the database has no file, so that it would not last"),
        ("a\0b", "no file can have the name 'a\\x00b'"),
        ("mysql://me@server/name", "there is no database of kind 'mysql'"),
        ("postgresql://me:secret@server:port/name", "the URL of the database is malformed"),
        ("://", "the URL of the database is malformed"),
    ],
)
def test_what_is_not_understood(where: str, problem: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        Place.of(where)
    assert caught.value.problem == problem
    assert caught.value.help == "give a file, sqlite:///FILE, or postgresql://USER:PASSWORD@SERVER:PORT/NAME"
