import io
import json
import os
import signal
from pathlib import Path

import pytest
from tests.onnx_models import model_of

from intarsia import __version__
from intarsia.cli.commands import doctor as doctor_module
from intarsia.cli.exit import run_command_line
from intarsia.cli.reports.report import Report
from intarsia.support.errors import (
    IntarsiaError,
    InvalidModelError,
    TooSlowError,
    UsageError,
    VerificationError,
)

pytestmark = pytest.mark.quick_tests(
    14, also=["test_max_elements_bounds_the_models_of_a_command", "test_nobody_reads"]
)


def outcome(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return run_command_line(arguments, out, err), out.getvalue(), err.getvalue()


def replace_doctor(monkeypatch: pytest.MonkeyPatch, event: BaseException | Report | int) -> None:
    """Let `intarsia doctor` raise the event, return it, or receive it as a signal."""

    def doctor() -> Report:
        """Do as told."""
        match event:
            case BaseException():
                raise event
            case Report():
                return event
            case number:
                os.kill(os.getpid(), number)
                return Report({}, ("it went on",))

    monkeypatch.setattr(doctor_module, "doctor", doctor)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (IntarsiaError("it is so"), 1),
        (UsageError("it is so"), 2),
        (InvalidModelError("it is so"), 3),
        (VerificationError("it is so"), 4),
        (TooSlowError("it is so"), 5),
    ],
)
def test_each_error_has_its_code(monkeypatch: pytest.MonkeyPatch, error: IntarsiaError, code: int) -> None:
    replace_doctor(monkeypatch, error)
    assert outcome("doctor") == (code, "", "error: it is so\n")
    replace_doctor(monkeypatch, Report({"a": 1}, ("found",), error))
    assert outcome("doctor") == (code, "found\n", "error: it is so\n")


def test_success(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_doctor(monkeypatch, Report({"a": 1}, ("found",)))
    assert outcome("doctor") == (0, "found\n", "")
    assert outcome("doctor", "--json") == (0, '{\n  "a": 1\n}\n', "")


BUG = (
    "error: internal error: KeyError: 'x'\n"
    "help: this is a bug in Intarsia: run the same command with --debug and report the output\n"
)


def test_a_bug_is_one_line_and_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_doctor(monkeypatch, KeyError("x"))
    assert outcome("doctor") == (1, "", BUG)


def test_notes_of_a_bug_do_not_hide_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = ValueError("too few")
    bug.add_note("in pass FoldConstant")
    replace_doctor(monkeypatch, bug)
    lines = outcome("doctor")[2].splitlines()
    assert lines[:2] == ["error: internal error: ValueError: too few", "  in pass FoldConstant"]


def test_a_bug_with_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_doctor(monkeypatch, KeyError("x"))
    code, _, err = outcome("doctor", "--debug")
    assert code == 1
    assert "Traceback (most recent call last)" in err
    assert "in doctor" in err
    assert err.endswith(BUG)


@pytest.mark.parametrize(
    ("number", "word", "code"),
    [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "stopped by SIGTERM", 143)],
)
def test_signals(monkeypatch: pytest.MonkeyPatch, number: int, word: str, code: int) -> None:
    replace_doctor(monkeypatch, number)
    assert outcome("doctor") == (code, "", f"{word}\n")
    exit_code, out, err = outcome("doctor", "--json")
    assert (exit_code, err) == (code, "")
    assert json.loads(out) == {"error": word, "notes": [], "help": "", "exit_code": code}


def test_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    replace_doctor(monkeypatch, Report({}, ("found",)))
    err = io.StringIO()
    assert run_command_line(["doctor"], Closed(), err) == 141
    assert err.getvalue() == ""


@pytest.mark.parametrize(
    ("arguments", "problem", "help_line"),
    [
        (["bogus"], "no such command 'bogus'", "intarsia --help"),
        (["zoo"], "missing command", "intarsia zoo --help"),
        (["run"], "missing argument 'MODEL|ARTIFACT'", "intarsia run --help"),
        (["zoo", "export"], "missing argument 'NAME'", "intarsia zoo export --help"),
        (["run", "m.onnx", "--bogus"], "no such option: --bogus", "intarsia run --help"),
    ],
)
def test_usage_errors(arguments: list[str], problem: str, help_line: str) -> None:
    assert outcome(*arguments) == (2, "", f"error: {problem}\nhelp: {help_line}\n")
    code, out, err = outcome(*arguments, "--json")
    assert (code, json.loads(out)["error"], err) == (2, problem, "")


def test_a_slip_is_met_with_a_suggestion() -> None:
    code, _, err = outcome("tunne")
    assert (code, err.splitlines()[0]) == (2, "error: no such command 'tunne'. Did you mean 'tune'?")


def test_the_shared_flags_stand_in_every_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["doctor"], ["tune"], ["run"], ["bench"], ["compare"], ["verify"], ["zoo", "list"]):
        assert outcome(*words, "--help")[0] == 0
        shown = capsys.readouterr().out
        assert all(flag in shown for flag in ("--json", "-q, --quiet", "--debug"))
        assert "<class" not in shown


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome("--version")[0] == 0
    assert capsys.readouterr().out == f"intarsia {__version__}\n"
    assert outcome()[0] == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: intarsia [OPTIONS] COMMAND")
    commands = shown.split("Commands:\n")[1]
    assert "..." not in commands  # no description is cut off
    assert [line.split()[0] for line in commands.splitlines()] == [
        "doctor",
        "devices",
        "tune",
        "run",
        "bench",
        "profile",
        "compare",
        "verify",
        "explain",
        "report",
        "opt",
        "bisect",
        "passes",
        "keygen",
        "sign",
        "zoo",
        "db",
    ]


def test_too_little_memory_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_doctor(monkeypatch, MemoryError("Unable to allocate 32.0 GiB"))
    assert outcome("doctor") == (
        1,
        "",
        "error: not enough memory for the model: unable to allocate 32.0 GiB\n"
        "help: fix smaller input shapes with --shape, or close other programs\n",
    )


def test_max_elements_bounds_the_models_of_a_command(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    text = "g (float[3] x) => (float[3] y) { y = Neg(x) }"
    path.write_bytes(model_of(text).SerializeToString())
    code, _, err = outcome("verify", str(path), "--max-elements=2", "--quiet")
    assert (code, err.splitlines()[0]) == (
        3,
        "error: the value 'x' has 3 elements (Tensor[(3,), float32]), more than the limit of 2",
    )
