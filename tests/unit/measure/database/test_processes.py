"""Several processes on one database, and one that dies."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.measure_records import HERE, TARGET, candidate, record, worked

from intarsia.measure.database import Database
from intarsia.measure.database.connections import Connections
from intarsia.measure.database.place import Place
from intarsia.support.errors import DatabaseError

ROOT = Path(__file__).parents[4]

COMMITTING = """
import sys
from tests.measure_records import record, worked
from intarsia.measure.database import Database

place, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Database.open(place) as database:
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(count):
        database.commit(record([name, number], worked(1.0 + number)))
        database.commit(record("shared", worked(1.0, timestamp=float(name))))
        print(number, flush=True)
"""


def committing(place: str, name: str, count: int) -> subprocess.Popen[str]:
    """A process that opens the database, waits for a line, then tells the number of each commit."""
    return subprocess.Popen(
        [sys.executable, "-c", COMMITTING, place, name, str(count)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def started(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def opened(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return process.stdout.readline() == "open\n"


@pytest.mark.slow
def test_several_processes_make_and_fill_one_database(place: str) -> None:
    processes = [committing(place, str(number), 50) for number in range(3)]  # they all make the tables
    try:
        assert all(map(opened, processes))
        for process in processes:
            started(process)
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(output.splitlines() == [str(number) for number in range(50)] for output in outputs)
    with Database.open(place) as database:
        assert database.statistics().records == 151
        shared = database.find("workload", TARGET, candidate("shared"), HERE)
        assert shared is not None
        assert [each.result.timestamp for each in shared.measurements] == [0, 1, 2]


@pytest.mark.slow
def test_what_was_committed_survives_the_death_of_the_process(place: str) -> None:
    process = committing(place, "1", 1_000_000)
    assert process.stdout is not None
    try:
        assert opened(process)
        started(process)
        lines = [process.stdout.readline() for _ in range(40)]
    finally:
        process.send_signal(signal.SIGKILL)
    lines += process.stdout.readlines()  # communicate() would miss what is buffered here already
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    told = len([line for line in lines if line.endswith("\n")])
    assert told >= 40
    if "://" not in place:
        with sqlite3.connect(place) as connection:  # as it is, without any repair of ours
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Database.open(place, create=False) as database:
        for number in range(told):
            found = database.find("workload", TARGET, candidate(["1", number]), HERE)
            assert found == record(["1", number], worked(1.0 + number))
        assert database.statistics().records - 1 in {told, told + 1}  # one may have been in flight
        database.commit(record("after"))


def test_a_transaction_of_another_process_is_waited_for_and_then_an_error(tmp_path: Path) -> None:
    path = tmp_path / "measurements.db"
    with Database.open(path, busy_seconds=0.1) as database:
        database.commit(record("before"))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError) as caught:
            database.commit(record("c"))
        assert str(caught.value) == (
            f"the database {path} is locked by another process\n"
            "help: wait until the other process has finished, or end it; all that was measured before is kept"
        )
        assert database.find("workload", TARGET, candidate("before"), HERE) == record(
            "before"
        )  # reading goes on
        holder.execute("ROLLBACK")
        holder.close()
        database.commit(record("c"))
        assert database.statistics().records == 2


def test_a_long_wait_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, notes = tmp_path / "measurements.db", list[str]()
    with Database.open(path, busy_seconds=0.2, on_wait=notes.append) as database:
        database.commit(record("before"))
        assert notes == []
        monkeypatch.setattr("intarsia.measure.database.connections.NOTE_SECONDS", 0.01)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(DatabaseError):
                database.commit(record("c"))
        holder.close()
    assert notes == [f"waiting for the database {path}, which another process may have locked"]


def held_exclusively(path: Path) -> sqlite3.Connection:
    """A connection that keeps the file to itself until it is closed: others cannot even connect."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    return holder


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda database: database.commit(record("c")), id="writing"),
        pytest.param(lambda database: database.statistics(), id="snapshot"),
        pytest.param(lambda database: database.summaries(), id="rows"),
        pytest.param(lambda database: Database.open(database.place), id="opening"),
    ],
)
def test_a_long_wait_for_a_connection_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Database], object]
) -> None:
    path, notes = tmp_path / "measurements.db", list[str]()
    monkeypatch.setattr(Database, "open", partial(Database.open, busy_seconds=0.1, on_wait=notes.append))
    database = Database.open(path)
    database.close()  # its connections: the next use connects anew
    monkeypatch.setattr("intarsia.measure.database.connections.NOTE_SECONDS", 0.01)
    with closing(held_exclusively(path)), pytest.raises(DatabaseError, match="is locked by another process"):
        use(database)
    assert notes == [f"waiting for the database {path}, which another process may have locked"]


def test_a_long_wait_for_compacting_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intarsia.measure.database.connections.NOTE_SECONDS", 0.01)
    path, notes = tmp_path / "measurements.db", list[str]()
    Database.open(path).close()
    connections = Connections(Place.of(path), create=False, busy_seconds=0.1, on_wait=notes.append)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder, closing(connections):
        holder.execute("BEGIN IMMEDIATE")
        connections.compact()
    assert notes == [f"waiting for the database {path}, which another process may have locked"]


def test_a_database_that_another_process_has_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "measurements.db"
    with Database.open(path) as database:
        database.commit(record("c"))
    with closing(held_exclusively(path)), pytest.raises(DatabaseError, match="is locked by another process"):
        Database.open(path, busy_seconds=0.1)
    with Database.open(path) as database:
        assert database.statistics().records == 1
