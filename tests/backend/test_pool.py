"""The pool itself: a worker that dies or hangs loses one verdict."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.backend.pool import judge_all
from tests.backend.verdict import Column, Outcome, Verdict

COLUMNS = (Column.REFERENCE, Column.AUTO)

STUB = """
import json, os, signal, sys, time
print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    for column in request["columns"]:
        if column == "reference" and request["case"] == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if column == "reference" and request["case"] == "exit":
            os._exit(3)
        if column == "reference" and request["case"] == "hang":
            time.sleep(600)
        verdict = {"case": request["case"], "column": column, "outcome": "passed"}
        print(json.dumps(verdict), flush=True)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    script = tmp_path / "stub.py"
    script.write_text(STUB)
    return [sys.executable, str(script)]


@pytest.mark.parametrize("workers", [1, 3])
def test_every_case_gets_its_verdicts(command: list[str], workers: int) -> None:
    names = [f"case{number}" for number in range(7)]
    heard: list[Verdict] = []
    found = judge_all(command, names, COLUMNS, workers, heard=heard.append)
    expected = {(name, column, Outcome.PASSED) for name in names for column in COLUMNS}
    assert {(item.case, item.column, item.outcome) for item in found} == expected
    assert len(found) == len(expected)
    assert sorted(heard, key=str) == sorted(found, key=str)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "outcome", "reason"),
    [
        ("crash", Outcome.CRASHED, "the process died: SIGSEGV"),
        ("exit", Outcome.CRASHED, "the process died: exit code 3"),
        ("hang", Outcome.HUNG, "no verdict within 3 s"),
    ],
)
def test_a_death_loses_one_verdict(command: list[str], case: str, outcome: Outcome, reason: str) -> None:
    found = judge_all(command, ["before", case, "after"], COLUMNS, workers=1, hung_after=3)
    lost = [item for item in found if item.outcome is not Outcome.PASSED]
    assert lost == [Verdict(case, Column.REFERENCE, outcome, reason)]
    assert len(found) == 6


def test_a_worker_that_does_not_start_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="a worker did not start: false"):
        judge_all(["false"], ["case"], COLUMNS, workers=1)
