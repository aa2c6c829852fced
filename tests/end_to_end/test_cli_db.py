"""`intarsia db` on small databases."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.end_to_end.command_line import Outcome, process, within
from tests.measure_records import TARGET, failed, record, worked

from intarsia.measure.database import Database
from intarsia.measure.database.connections import Connections
from intarsia.measure.database.place import Place
from intarsia.measure.measure_result import MeasureError
from intarsia.toolchain.this_host import this_host

pytestmark = pytest.mark.quick_tests(8, also=["test_export_import_and_merge"])

WORKLOAD = "7c5d0000aaaa"
NEWEST = 1_790_000_000.0  # 2026-09-21 14:13


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with two workloads, which is the one that commands take."""
    here, path = this_host().digest, tmp_path / "a.db"
    with Database.open(path) as database:
        database.add_workload(WORKLOAD, "resnet", "def @main() { 1 }\n")
        database.add_host(this_host())
        database.commit_many(
            [
                record("slow", worked(0.004, 0.005, timestamp=NEWEST), workload=WORKLOAD, host=here),
                record("fast", worked(0.002, max_error=1e-6), workload=WORKLOAD, host=here),
                record("bad", failed(MeasureError.WRONG_ANSWER), workload=WORKLOAD, host=here),
                record("there", worked(0.001), workload=WORKLOAD, host="dddd0000eeee"),
                record("other", worked(0.5), workload="7c5dffff", target="cpu", host=here),
            ]
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTARSIA_DATABASE", str(path))
    return path


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    "words",
    [
        "list",
        "show resnet",
        "top resnet",
        "export lines.jsonl",
        "import kept.jsonl",
        "merge a.db --database b.db",
        "gc --keep-top 1",
    ],
)
def test_a_wait_for_another_process_is_noted(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    with Database.open(place) as database:
        database.export_lines(place.with_name("kept.jsonl"))
    waited: list[str] = []

    def open_after_a_wait(where: str | Path, *, create: bool, on_wait: Callable[[str], object]) -> Database:
        waited.append(str(where))
        on_wait(f"waiting for {where}")
        return Database(Connections(Place.of(where), create=create, busy_seconds=1.0))

    Database.open(place.with_name("b.db")).close()
    monkeypatch.setattr(Database, "open", open_after_a_wait)
    outcome = within(["db", *words.split()])
    assert outcome.code == 0
    assert outcome.err == "".join(f"note: waiting for {where}\n" for where in waited)
    assert len(waited) == (2 if "merge" in words else 1)


def test_list(place: Path) -> None:
    outcome = within(["db", "list"])
    host = this_host().digest[:8]
    assert outcome.out.splitlines()[:4] == [
        "workload  name    target                 host      candidates  failed     best  measured last (UTC)",
        f"7c5d0000  resnet  {TARGET}  {host}           3       1  2.00 ms  2026-09-21 14:13",
        f"7c5d0000  resnet  {TARGET}  dddd0000           1       0  1.00 ms  1970-01-01 00:16",
        f"7c5dffff          cpu                    {host}           1       0   500 ms  1970-01-01 00:16",
    ]
    assert outcome.out.splitlines()[-1].startswith(f"{place}: 5 records, ")
    document = within(["db", "list", "--json"]).document
    assert document["errors"] == {"ok": 4, "wrong answer": 1}
    assert document["workloads"][0] == {
        "workload": WORKLOAD,
        "name": "resnet",
        "target": TARGET,
        "host": this_host().digest,
        "candidates": 3,
        "failed": 1,
        "best_seconds": 0.002,
        "measured_last": NEWEST,
    }


@pytest.mark.usefixtures("place")
def test_show() -> None:
    outcome = within(["db", "show", "resnet"])
    here = this_host()
    lines = outcome.out.splitlines()
    assert lines[0] == f"{WORKLOAD} resnet"
    assert f"host {here.digest[:8]}: {here.cpu_model}, {here.cores} cores" in lines
    assert "host dddd0000: unknown" in lines
    assert any(line.endswith("wrong answer           1        -  it ended as wrong answer") for line in lines)
    assert lines[-1] == "def @main() { 1 }"
    document = within(["db", "show", "7c5d0", "--json"]).document
    assert document["program"] == "def @main() { 1 }\n"
    assert document["hosts"] == {here.digest: here.to_json(), "dddd0000eeee": None}
    assert {
        (each["host"][:4], each["error"], each["count"], each["best_seconds"])
        for each in document["candidates"]
    } == {
        (here.digest[:4], "ok", 2, 0.002),
        (here.digest[:4], "wrong answer", 1, None),
        ("dddd", "ok", 1, 0.001),
    }


@pytest.mark.usefixtures("place")
def test_top() -> None:
    outcome = within(["db", "top", "resnet"])
    assert outcome.out.splitlines() == [
        " median  repeats  max error  measured last (UTC)  target                 kind      trace",
        f'2.00 ms        1    1.0e-06  1970-01-01 00:16     {TARGET}  schedule  "fast"',
        f'4.50 ms        2          -  2026-09-21 14:13     {TARGET}  schedule  "slow"',
        "",
        "1 measured on other hosts are not comparable (--host DIGEST shows them)",
    ]
    document = within(["db", "top", "resnet", "-k", "1", "--json"]).document
    assert [each["trace"] for each in document["candidates"]] == ["fast"]
    assert document["on_other_hosts"] == 1
    document = within(["db", "top", "resnet", "--host", "dddd", "--json"]).document
    assert [each["median_seconds"] for each in document["candidates"]] == [0.001]
    outcome = within(["db", "top", "resnet", "--target", "cpu"])
    assert outcome.out == f"no candidate of resnet works on host {this_host().digest[:8]}\n"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ("show", "nothing"),
            2,
            "error: there is no workload 'nothing'\nhelp: intarsia db list shows all workloads\n",
        ),
        (
            ("show", "7c5d"),
            2,
            "error: '7c5d' matches 2 workloads\nhelp: give more characters of 7c5d0000aaaa, 7c5dffff\n",
        ),
        (
            ("top", "resnet", "--host", "zz"),
            2,
            "error: no host has a digest that begins with 'zz'\nhelp: intarsia db list shows them\n",
        ),
        (
            ("gc",),
            2,
            "error: nothing says which records to remove\nhelp: give at least one condition\n",
        ),
        (
            ("list", "--database", "missing.db"),
            6,
            "error: there is no database missing.db\nhelp: measure something first, or give another place\n",
        ),
    ],
)
def test_mistakes(arguments: tuple[str, ...], code: int, error: str) -> None:
    assert within(["db", *arguments]) == Outcome(code, "", error)


def test_export_import_and_merge(place: Path) -> None:
    assert within(["db", "export", "a.jsonl"]).out == "wrote a.jsonl (records: 5)\n"
    new = ("--database", "b.db")
    assert within(["db", "import", "a.jsonl", *new]).out == "b.db: 5 added, 0 updated, 0 already there\n"
    with Database.open("b.db") as database:
        database.commit(record("new"))
    document = within(["db", "merge", "b.db", "--json"]).document
    assert document == {"database": str(place), "added": 1, "updated": 0, "skipped": 5}
    again = within(["db", "export", "again.jsonl", "--json"]).document
    assert (again["records"], again["workloads"], again["hosts"]) == (6, 1, 1)


def test_an_import_that_fails_leaves_nothing(place: Path) -> None:
    Path("bad.jsonl").write_text('{"format":"intarsia measurements","version":1}\n{}\n')
    outcome = within(["db", "import", "bad.jsonl"])
    assert outcome.code == 6
    assert outcome.err.startswith("error: line 2 of bad.jsonl is bad: ")


def test_gc(place: Path) -> None:
    with Database.open(place) as database:
        database.commit(record("young", failed(timestamp=time.time()), workload=WORKLOAD))
    assert (
        within(["db", "gc", "--older-than", "30d", "--other-hosts"]).out == "removed 1 records; 5 are left\n"
    )
    document = within(["db", "gc", "--keep-top", "1", "--json"]).document
    assert document == {"removed": {"records": 3, "workloads": 0, "hosts": 0}, "records": 2}


@pytest.mark.slow
def test_as_a_process_in_the_folder_of_the_user(place: Path, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": "", "INTARSIA_DATABASE": ""}
    merged = process("db", "merge", "a.db", cwd=tmp_path, env=home)
    own = tmp_path / ".local" / "share" / "intarsia" / "measurements.db"
    assert merged == Outcome(0, f"{own}: 5 added, 0 updated, 0 already there\n", "")
    listed = process("db", "list", "--json", cwd=tmp_path, env=home)
    assert json.loads(listed.out)["records"] == 5
