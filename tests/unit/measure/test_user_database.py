"""Where the user's own database is."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from intarsia.measure.user_database import default_database, open_database
from intarsia.support.errors import DatabaseError, OutputError


def test_the_data_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    own = Path("/home/me/.local/share/intarsia/measurements.db")
    assert default_database({}) == own
    assert default_database({"XDG_DATA_HOME": ""}) == own
    assert default_database({"XDG_DATA_HOME": "relative"}) == own
    assert default_database({"XDG_DATA_HOME": "/data"}) == Path("/data/intarsia/measurements.db")


def test_its_folder_is_made_when_something_is_to_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.raises(DatabaseError, match="there is no database"):
        open_database(None)
    assert list(tmp_path.iterdir()) == []
    with open_database(None, create=True) as database:
        assert database.place == str(tmp_path / "data" / "intarsia" / "measurements.db")
    with open_database("") as database:
        assert database.statistics().records == 0


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.raises(OutputError, match="cannot write"):
        open_database(None, create=True)


def test_a_read_only_database_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "kept.db")
    open_database(place, create=True).close()
    connect = sqlite3.connect

    def connect_read_only(file: str, /, **options: Any) -> sqlite3.Connection:
        """Open a file as SQLite does that may not be written; file modes do not bind the superuser."""
        opened: sqlite3.Connection = connect(file.replace("mode=rwc", "mode=ro"), **options)
        return opened

    monkeypatch.setattr(sqlite3, "connect", connect_read_only)
    with pytest.raises(DatabaseError, match=r"kept\.db cannot be written: it is read-only"):
        open_database(place, create=True)


def test_the_word_none_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatabaseError, match="needs a database"):
        open_database("none", create=True)
    assert list(tmp_path.iterdir()) == []
    open_database("./none", create=True).close()
    assert [path.name for path in tmp_path.iterdir()] == ["none"]
