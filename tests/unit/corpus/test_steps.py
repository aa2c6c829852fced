from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus.check_model import Steps, attempt

from intarsia.support.errors import CompileError, ExecutionError


def raising(error: Exception) -> dict[str, Any]:
    raise error


def test_errors_become_outcomes() -> None:
    assert attempt(lambda: raising(CompileError("no kernel")))["status"] == "refused"
    assert attempt(lambda: raising(ExecutionError("it broke")))["status"] == "failed"
    outcome = attempt(lambda: raising(KeyError("x")))
    assert outcome["status"] == "foreign"
    assert outcome["message"] == "KeyError: 'x'"


def test_a_step_is_run_once(tmp_path: Path) -> None:
    steps, calls = Steps(tmp_path / "steps.jsonl"), []

    def work() -> dict[str, Any]:
        calls.append(1)
        return {"status": "right"}

    assert steps.run("native", work) == steps.run("native", work) == {"status": "right"}
    assert calls == [1]


def test_the_step_that_a_crash_interrupted_is_crashed_and_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "steps.jsonl"
    Steps(file).run("import", lambda: {"status": "right"})
    assert Steps(file).fail_interrupted("killed") is None
    with file.open("a") as stream:
        stream.write('{"step": "openvino"}\n')
    assert Steps(file).fail_interrupted("killed by SIGSEGV") == "openvino"
    assert Steps(file).run("openvino", lambda: {"status": "right"}) == {
        "status": "crashed",
        "message": "killed by SIGSEGV",
    }


def test_seconds_are_kept_of_steps_that_ended(tmp_path: Path) -> None:
    file = tmp_path / "steps.jsonl"
    Steps(file).run("import", lambda: {"status": "right"})
    with file.open("a") as stream:
        stream.write('{"step": "openvino"}\n')
    Steps(file).fail_interrupted("killed")
    assert list(Steps(file).seconds()) == ["import"]
