"""The argument `database` of `tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from intarsia.driver.database_argument import opens_database
from intarsia.measure.database import Database
from intarsia.support.errors import DatabaseError, UsageError


@opens_database
def taken(*, database: Any = None) -> Any:
    if database is not None:
        database.check_writable()
    return database


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_opened_for_the_call(kind: type, tmp_path: Path) -> None:
    path = tmp_path / "measurements.sqlite"
    opened = taken(database=kind(path))
    assert isinstance(opened, Database)
    assert path.exists()
    assert taken(database=kind(path)) is not opened


def test_an_open_one_stays_open(tmp_path: Path) -> None:
    with Database.open(tmp_path / "measurements.sqlite", create=True) as opened:
        assert taken(database=opened) is opened
        opened.check_writable()
    assert taken() is None


def test_false_is_no_database() -> None:
    assert taken(database=False) is None


@pytest.mark.parametrize("wrong", [True, 3, ["measurements.sqlite"]])
def test_other_values_are_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match="expected a database, its file or its URL"):
        taken(database=wrong)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, but some text that is long enough to be read as a header")
    with pytest.raises(DatabaseError):
        taken(database=path)
