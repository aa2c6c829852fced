"""Databases that cannot be used: exact messages, and what was measured before is kept."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.measure_records import HERE, TARGET, candidate, record, worked

from intarsia.measure.database import Database, MergeCounts
from intarsia.support.errors import DatabaseError, OutputError

ROOT = Path(__file__).parents[2]
KEPT = "all that was measured before is kept"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with 500 records."""
    place = tmp_path / "measurements.db"
    with Database.open(place) as database:
        database.commit_many(record(number, worked(1.0 + number)) for number in range(500))
    return place


def message(function: Callable[[], object]) -> str:
    with pytest.raises(DatabaseError) as caught:
        function()
    assert caught.value.exit_code == 6
    return str(caught.value)


def test_no_database(tmp_path: Path) -> None:
    place = tmp_path / "measurements.db"
    assert message(lambda: Database.open(place, create=False)) == (
        f"there is no database {place}\nhelp: measure something first, or give another place"
    )
    assert list(tmp_path.iterdir()) == []


def test_no_folder(tmp_path: Path) -> None:
    place = tmp_path / "missing" / "measurements.db"
    assert message(lambda: Database.open(place)) == (
        f"the database {place} cannot be made: its folder does not exist\nhelp: create the folder first"
    )


def test_a_folder(tmp_path: Path) -> None:
    assert message(lambda: Database.open(tmp_path)) == (
        f"the database {tmp_path} is a folder\nhelp: give the name of a file in it"
    )


def test_a_folder_that_cannot_be_written() -> None:
    place = Path("/proc/measurements.db")  # not even root may make files there
    assert message(lambda: Database.open(place)) == (
        f"the database {place} cannot be opened\n"
        "help: see that its folder exists and that you may write to it"
    )


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    place = tmp_path / ("x" * 300)
    assert message(lambda: Database.open(place)) == (
        f"the database {place} cannot be opened: file name too long\nhelp: give another place"
    )


USING = """
import os, sys
from tests.measure_records import record
from intarsia.measure.database import Database
from intarsia.support.errors import DatabaseError

path, loading = sys.argv[1:]
Database.open(loading).close()  # loads all that is needed before the rights to do so are gone
if os.geteuid() == 0:  # root may write everywhere
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    with Database.open(path) as database:
        print(database.statistics().records, flush=True)
        database.commit(record("c"))
except DatabaseError as error:
    print(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("folder_mode", [0o755, 0o555])
def test_what_cannot_be_written_can_be_read(open_folder: Path, tmp_path: Path, folder_mode: int) -> None:
    place = open_folder / "measurements.db"
    with Database.open(place) as database:
        database.commit(record("before"))
        for file in open_folder.iterdir():  # while it is open, its log is there too
            file.chmod(0o444)
        open_folder.chmod(folder_mode)
        done = subprocess.run(
            [sys.executable, "-c", USING, str(place), str(tmp_path / "loading.db")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == (
        f"1\nthe database {place} cannot be written: it is read-only\n"
        "help: choose a database in a folder that you may write to\n"
    )


def test_not_a_database(tmp_path: Path) -> None:
    place = tmp_path / "measurements.db"
    place.write_text("This is a text that somebody wants to keep. " * 100)
    assert message(lambda: Database.open(place)) == (
        f"the database {place} is not a database\nhelp: give the name of a database or of a new file"
    )
    assert place.read_text() == "This is a text that somebody wants to keep. " * 100


def test_a_damaged_database(path: Path) -> None:
    data = bytearray(path.read_bytes())
    page = 4096
    for start in range(8 * page, len(data), page):
        data[start : start + 200] = b"\xff" * 200
    path.write_bytes(data)
    expected = (
        f"the database {path} is damaged\nhelp: move it aside and measure again, "
        "or save what can be read: sqlite3 FILE .recover | sqlite3 NEW_FILE"
    )
    with Database.open(path) as database:
        assert message(lambda: database.top_k("workload", TARGET, HERE, 1000)) == expected
        assert message(lambda: database.commit_many(record([i]) for i in range(1000))) == expected
        assert message(lambda: database.export_lines(path.parent / "lines")) == expected
    assert not (path.parent / "lines").exists()


def test_a_database_that_is_cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10_000])
    assert "is damaged" in message(lambda: Database.open(path))


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ("DROP TABLE intarsia_records", "no such table: intarsia_records"),
        (
            "ALTER TABLE intarsia_records RENAME COLUMN cost TO price",
            "table intarsia_records has no column named cost",
        ),
    ],
)
def test_a_database_that_something_else_has_changed(path: Path, change: str, lacking: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(change)
    with Database.open(path) as database:
        assert message(lambda: database.commit(record("new"))) == (
            f"the database {path} lacks a part that Intarsia made: {lacking}\n"
            "help: something else has changed it: restore it, or move it aside and measure again"
        )


def test_a_full_disk(path: Path) -> None:
    with Database.open(path) as database:
        with database._connections.snapshot() as connection:  # the connection that is used again below
            connection.execute(text("PRAGMA max_page_count = 1"))  # never less than there are
        assert message(lambda: database.commit_many(record([i]) for i in range(500))) == (
            f"the database {path} cannot be written: the disk is full\n"
            f"help: free some space, then run the same command again: {KEPT}"
        )
        assert database.statistics().records == 500
        with database._connections.snapshot() as connection:
            connection.execute(text("PRAGMA max_page_count = 1000000"))
        assert database.commit_many(record([i]) for i in range(500)) == MergeCounts(added=500)


@pytest.mark.slow
def test_a_file_that_may_not_grow(path: Path) -> None:
    """A real write that the system refuses, in a process that has such a limit."""
    program = f"""
import resource, signal
from tests.measure_records import record
from intarsia.measure.database import Database
from intarsia.support.errors import DatabaseError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Database.open({str(path)!r}) as database:
    size = {path.stat().st_size}
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        for number in range(100_000):
            database.commit(record([number]))
            done = number + 1
    except DatabaseError as error:
        print(done)
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    count, problem, help_line = done.stdout.splitlines()
    assert problem in {
        f"the database {path} cannot be read or written: the disk failed",
        f"the database {path} cannot be written: the disk is full",
    }
    assert help_line.startswith("help: ")
    with Database.open(path) as database:
        assert all(database.find("workload", TARGET, candidate([i]), HERE) for i in range(int(count)))
        database.commit(record("after"))
        assert database.statistics().records == 500 + int(count) + 1


def test_a_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert message(lambda: Database.open("postgresql://me:secret@server/name")) == (
        "the database postgresql://me:***@server/name needs the package psycopg, which is not installed "
        "or does not work\nhelp: pip install 'intarsia[postgresql]'"
    )


def test_an_export_that_cannot_be_written(path: Path) -> None:
    with Database.open(path) as database, pytest.raises(OutputError) as caught:
        database.export_lines(Path("/proc/lines.jsonl"))
    assert "cannot write /proc/lines.jsonl" in caught.value.problem
