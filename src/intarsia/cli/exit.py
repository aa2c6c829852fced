"""End of the command line: every outcome of a command becomes a message and an exit code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TextIO

import typer

from intarsia.cli.console.console import Console
from intarsia.cli.console.flags import Flags
from intarsia.cli.console.interruption import Interrupted, interruptible
from intarsia.cli.reports.report import Report
from intarsia.support.errors import IntarsiaError, UsageError

PROGRAM: Final = "intarsia"
SUCCESS: Final = 0
BROKEN_PIPE: Final = 141
"""Exit code of shells for a process that writes into a closed pipe: 128 + SIGPIPE."""

_PARSE_ERROR: Final[type[BaseException]] = typer.BadParameter.__mro__[
    1
]  # UsageError, which typer does not export


def run_command_line(arguments: Sequence[str], out: TextIO, err: TextIO) -> int:
    """Run one command line; never raises.

    Args:
        arguments: Arguments without the program's name.
        out: Stream for results.
        err: Stream for errors, notes and progress.

    Returns:
        The exit code (DESIGN section 11).
    """
    for stream in (out, err):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")  # file names may be invalid UTF-8
    flags, others = Flags.split(arguments)
    try:
        with interruptible():
            return _run(others, Console(flags, out, err))
    except BrokenPipeError:
        _silence(out, err)
        return BROKEN_PIPE
    except IntarsiaError as error:  # stdout itself cannot be written
        _silence(out)
        Console(Flags(), out, err).fail(error)
        return error.exit_code


def _run(arguments: list[str], console: Console) -> int:
    try:
        outcome = _outcome(arguments, console)
    except Interrupted as interruption:
        console.report_signal(interruption.word, interruption.exit_code)
        return interruption.exit_code
    except BrokenPipeError:
        raise
    except IntarsiaError as error:
        console.fail(error)
        return error.exit_code
    except MemoryError as error:
        console.fail(_too_large(error))
        return IntarsiaError.exit_code
    except Exception as error:  # any other error is a bug, and must not look like a user error
        console.fail(_bug(error))
        return IntarsiaError.exit_code
    if isinstance(outcome, Report):
        console.present(outcome)
        return SUCCESS if outcome.error is None else outcome.error.exit_code
    return outcome


def _outcome(arguments: list[str], console: Console) -> Report | int:
    """Run the command; return its report, or an exit code where typer handles it (--help, --version)."""
    from intarsia.cli.app import build_command
    from intarsia.cli.arguments.bash_words import rejoined_words

    os.environ.update(rejoined_words(os.environ))
    try:
        outcome: object = build_command()(
            arguments or ["--help"], prog_name=PROGRAM, standalone_mode=False, obj=console
        )
    except _PARSE_ERROR as error:
        raise _usage_error(error) from error
    except SystemExit as stop:  # typer ends the process itself after a completion
        return stop.code if isinstance(stop.code, int) else SUCCESS
    return outcome if isinstance(outcome, Report | int) else SUCCESS


def _usage_error(error: BaseException) -> UsageError:
    message: str = error.format_message()  # type: ignore[attr-defined]  # a usage error of typer has it
    path = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)
    problem = message[:1].lower() + message[1:].rstrip(".")
    return UsageError(problem, help=f"{path} --help")


def _too_large(error: MemoryError) -> IntarsiaError:
    detail = str(error)
    failure = IntarsiaError(
        "not enough memory for the model" + (f": {detail[:1].lower() + detail[1:]}" if detail else ""),
        help="fix smaller input shapes with --shape, or close other programs",
    )
    failure.__cause__ = error
    return failure


def _bug(error: Exception) -> IntarsiaError:
    detail = f": {error}" if str(error) else ""
    bug = IntarsiaError(
        f"internal error: {type(error).__name__}{detail}",
        help="this is a bug in Intarsia: run the same command with --debug and report the output",
    )
    for note in getattr(error, "__notes__", ()):  # where it was raised, such as the pass
        bug.add_note(note)
    bug.__cause__ = error
    return bug


def _silence(*streams: TextIO) -> None:
    """Redirect streams to /dev/null, so that flushing at exit does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):  # without a file descriptor, as in tests
            continue
    os.close(nowhere)
