import io
import json
import math

import pytest

from intarsia.cli.console.console import Console
from intarsia.cli.console.flags import Flags
from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table
from intarsia.driver.progress import Progress, TuneStage
from intarsia.support.errors import IntarsiaError, TooSlowError, UsageError

TABLE = Table(("name", "size"), (("a[b]", "1"),), frozenset({1}), chosen=0)
REPORT = Report({"best": "a", "ratio": math.inf}, ("first", TABLE, "second", "third"))
PLAIN = "first\n\nname  size\na[b]     1\n\nsecond\nthird\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def streams(terminal: bool = False) -> tuple[io.StringIO, io.StringIO]:
    return (Terminal(), Terminal()) if terminal else (io.StringIO(), io.StringIO())


def test_people_read_lines_with_room_around_tables() -> None:
    out, err = streams()
    Console(Flags(), out, err).present(REPORT)
    assert (out.getvalue(), err.getvalue()) == (PLAIN, "")


def test_programs_read_one_document() -> None:
    out, err = streams()
    Console(Flags(json=True), out, err).present(REPORT)
    assert (json.loads(out.getvalue()), err.getvalue()) == ({"best": "a", "ratio": None}, "")


def test_a_result_that_is_not_good_enough() -> None:
    report = Report(REPORT.document, REPORT.blocks, TooSlowError("too slow", help="buy a computer"))
    out, err = streams()
    Console(Flags(), out, err).present(report)
    assert (out.getvalue(), err.getvalue()) == (PLAIN, "error: too slow\nhelp: buy a computer\n")
    out, err = streams()
    Console(Flags(json=True), out, err).present(report)
    assert json.loads(out.getvalue()) == {
        "best": "a",
        "ratio": None,
        "error": "too slow",
        "notes": [],
        "help": "buy a computer",
        "exit_code": 5,
    }
    assert err.getvalue() == ""


def failure() -> UsageError:
    error = UsageError("no such thing", help="look again")
    error.add_note("in m.onnx")
    return error


def test_errors_go_to_stderr() -> None:
    out, err = streams()
    Console(Flags(), out, err).fail(failure())
    assert out.getvalue() == ""
    assert err.getvalue() == "error: no such thing\n  in m.onnx\nhelp: look again\n"


def test_debug_shows_where_an_error_comes_from() -> None:
    out, err = streams()
    try:
        raise failure()
    except UsageError as error:
        Console(Flags(debug=True), out, err).fail(error)
    assert "Traceback (most recent call last)" in err.getvalue()
    assert err.getvalue().endswith("error: no such thing\n  in m.onnx\nhelp: look again\n")


def test_a_terminal_has_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out, err = streams(terminal=True)
    console = Console(Flags(), out, err)
    console.present(REPORT)
    console.fail(failure())
    assert "\x1b[1;32ma[b]" in out.getvalue()
    assert "\x1b[1;31merror:" in err.getvalue()


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    out, err = streams(terminal=True)
    console = Console(Flags(), out, err)
    console.present(REPORT)
    console.fail(failure())
    assert "a[b]" in out.getvalue()
    assert not any(f"\x1b[1;3{colour}m" in out.getvalue() + err.getvalue() for colour in range(8))


def test_a_dumb_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out, err = streams(terminal=True)
    Console(Flags(), out, err).present(REPORT)
    assert out.getvalue() == PLAIN


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (Flags(), "[0.0s] importing the model\nnote: hello\n"),
        (Flags(quiet=True), ""),
        (Flags(json=True), ""),
    ],
)
def test_what_is_told_on_the_side(flags: Flags, expected: str) -> None:
    out, err = streams()
    console = Console(flags, out, err)
    with console.progress() as report:
        report(Progress(TuneStage.IMPORT))
        console.note("hello")
    assert (out.getvalue(), err.getvalue()) == ("", expected)


def test_a_full_disk_behind_stdout() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(IntarsiaError) as caught:
        Console(Flags(), Full(), io.StringIO()).present(REPORT)
    assert str(caught.value) == "cannot write the standard output: no space left on device"
