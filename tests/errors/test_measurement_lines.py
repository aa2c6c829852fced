"""Files of measurements that cannot be imported: exact messages, and nothing of them is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from intarsia.measure.database import Database
from intarsia.support.errors import DatabaseError

AGAIN = "help: nothing was imported; export it again, or remove the line"
HEADER = {"format": "intarsia measurements", "version": 1}
GOOD = {
    "record": {
        "workload": "w",
        "target": "cpu",
        "host": "h",
        "kind": "k",
        "trace": [1],
        "measurements": [
            {"costs": [1], "error": "ok", "message": "", "wall_seconds": 1, "timestamp": 1, "max_error": None}
        ],
    }
}


def message(function: Callable[[], object]) -> str:
    with pytest.raises(DatabaseError) as caught:
        function()
    return str(caught.value)


def changed(path: str, value: object) -> str:
    """The good line with something else at a place such as "record.measurements.0.costs"."""
    document = json.loads(json.dumps(GOOD))
    *parents, last = path.split(".")
    inner = document
    for name in parents:
        inner = inner[int(name)] if isinstance(inner, list) else inner[name]
    inner[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 2 column 1 (char 2)"),
        ("[" * 100_000, None),
        ("null", "it is neither a workload, a host nor a record"),
        ('{"record":{},"host":{}}', "it is neither a workload, a host nor a record"),
        ('{"record":[]}', "a record is an object, unlike []"),
        ('{"record":{}}', "a record has no 'host'"),
        ('{"workload":{"digest":1}}', "'digest' is a text, unlike 1"),
        ('{"host":{"digest":"h"}}', "a description is an object, unlike None"),
        ('{"host":{"digest":"a\\u0000b","description":{}}}', "a digest is ASCII, unlike 'a\\x00b'"),
        ('{"workload":{"digest":"","name":""}}', "a digest is ASCII, unlike ''"),
        (changed("record.more", 1), "a record has an unknown 'more'"),
        (changed("record.target", None), "'target' is a text, unlike None"),
        (changed("record.target", ""), None),
        (changed("record.target", "\ud800"), None),
        (changed("record.trace", float("nan")), None),
        (changed("record.measurements", {}), "measurements are a list, unlike {}"),
        (changed("record.measurements", []), "a record has at least one measurement"),
        (changed("record.measurements", [1]), "a measurement is an object, unlike 1"),
        (changed("record.measurements.0.costs", 1), "costs are a list, unlike 1"),
        (changed("record.measurements.0.costs", ["1"]), "expected a number, found '1'"),
        (changed("record.measurements.0.costs", [True]), "expected a number, found True"),
        (changed("record.measurements.0.costs", [10**400]), None),
        (changed("record.measurements.0.costs", [-1]), None),
        (changed("record.measurements.0.error", "fine"), "'fine' is not a valid MeasureError"),
        (changed("record.measurements.0.error", "crash"), None),
        (changed("record.measurements.0.max_error", "?"), "expected a number, found '?'"),
    ],
)
def test_a_bad_line(tmp_path: Path, line: str, problem: str | None) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join([json.dumps(HEADER), json.dumps(GOOD), line, json.dumps(GOOD)]) + "\n")
    with Database.open(tmp_path / "measurements.db") as database:
        found = message(lambda: database.import_lines(file))
        assert database.statistics().records == 0
    if problem is not None:
        assert found == f"line 3 of {file} is bad: {problem}\n{AGAIN}"
    assert found.startswith(f"line 3 of {file} is bad: ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", 'it does not say "format":"intarsia measurements", so this is no export of a database'),
        ("{}\n", 'it does not say "format":"intarsia measurements", so this is no export of a database'),
        (json.dumps({**HEADER, "version": 2}) + "\n", "the export has version 2, expected 1"),
    ],
)
def test_a_file_that_is_no_export(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(content)
    with Database.open(tmp_path / "measurements.db") as database:
        assert message(lambda: database.import_lines(file)) == f"line 1 of {file} is bad: {problem}\n{AGAIN}"


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(b"\xff\xfe\x00")
    with Database.open(tmp_path / "measurements.db") as database:
        assert message(lambda: database.import_lines(file)).startswith(f"line 1 of {file} is bad: ")


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(json.dumps(HEADER) + "\n" + json.dumps(GOOD))
    with Database.open(tmp_path / "measurements.db") as database:
        assert message(lambda: database.import_lines(file)) == (
            f"line 2 of {file} is bad: the line is cut off\n{AGAIN}"
        )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    with Database.open(tmp_path / "measurements.db") as database:
        assert message(lambda: database.import_lines(file)) == (
            f"cannot read {file}: no such file or directory\nhelp: give the name of an export"
        )
