"""The two streams of the command line: results on stdout; progress, notes and errors on stderr."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from intarsia.cli.console.flags import Flags
from intarsia.cli.console.progress import BarProgress, LineProgress
from intarsia.cli.reports.report import Block, Report, error_document, plain_data
from intarsia.cli.reports.table import Table, plain_table, rich_table
from intarsia.driver.progress import Progress, TuneStage
from intarsia.measure.timing.interleaved import Round
from intarsia.support.callbacks import silent
from intarsia.support.errors import IntarsiaError, OutputError

if TYPE_CHECKING:
    from rich.console import Console as RichConsole


class Console:
    """Presents reports and errors, as JSON, as plain text, or on a terminal with colours.

    Args:
        flags: Choice of the form and of the amount of output.
        out: Stream for results.
        err: Stream for progress, notes and errors.
    """

    def __init__(self, flags: Flags, out: TextIO, err: TextIO) -> None:
        self.flags = flags
        self._out = out
        self._err = err

    def present(self, report: Report) -> None:
        """Print the result of a command, followed by its error if it has one.

        Raises:
            OutputError: stdout cannot be written.
            BrokenPipeError: The reader of stdout has closed the pipe.
        """
        if self.flags.json:
            failure = {} if report.error is None else error_document(report.error)
            self._print_document({**report.document, **failure})
            return
        self._print_blocks(report.blocks)
        if report.error is not None:
            if self.flags.debug and report.error.__cause__ is not None:
                self._err.write("".join(traceback.format_exception(report.error.__cause__)))
            self._print_error(report.error)

    def fail(self, error: IntarsiaError) -> None:
        """Print an error without a result; with --json it is the document."""
        if self.flags.debug:
            self._err.write("".join(traceback.format_exception(error)))
        if self.flags.json:
            self._print_document(error_document(error))
        else:
            self._print_error(error)

    def report_signal(self, word: str, exit_code: int) -> None:
        """Report that a signal has ended the command."""
        if self.flags.json:
            self._print_document(error_document(IntarsiaError(word), exit_code))
        else:
            self._err.write(f"{word}\n")

    def note(self, text: str) -> None:
        """Print a note."""
        if not (self.flags.quiet or self.flags.json):
            self._err.write(f"note: {text}\n")

    @contextmanager
    def progress(self) -> Iterator[Callable[[Progress], None]]:
        """Yield a function for progress events: it draws a bar on a terminal, and writes lines otherwise."""
        if self.flags.quiet or self.flags.json:
            yield silent
        elif is_terminal(self._err):
            with BarProgress(_rich_console(self._err)) as bar:
                yield bar
        else:
            yield LineProgress(self._err)

    @contextmanager
    def measuring(self) -> Iterator[Callable[[Round], None]]:
        """Yield a function for rounds of a measurement, which shows them as `progress`."""
        with self.progress() as report:
            report(Progress(TuneStage.MEASURE))
            yield lambda done: report(Progress(TuneStage.MEASURE, done.fraction))

    def _print_document(self, document: object) -> None:
        text = json.dumps(plain_data(document), indent=2, ensure_ascii=False, allow_nan=False)
        with _output_errors():
            self._out.write(f"{text}\n")
            self._out.flush()

    def _print_blocks(self, blocks: tuple[Block, ...]) -> None:
        with _output_errors():
            if is_terminal(self._out):
                _print_richly(_rich_console(self._out), blocks)
            else:
                self._out.write(plain_text(blocks))
            self._out.flush()

    def _print_error(self, error: IntarsiaError) -> None:
        lines = [f"error: {error.problem}", *(f"  {note}" for note in getattr(error, "__notes__", ()))]
        lines += [f"help: {error.help}"] if error.help else []
        if not is_terminal(self._err):
            self._err.write("".join(f"{line}\n" for line in lines))
            return
        from rich.text import Text

        text = Text("\n".join(lines))
        text.highlight_regex(r"\Aerror:", "bold red")
        text.highlight_regex(r"(?m)^help:", "bold cyan")
        _rich_console(self._err).print(text, soft_wrap=True, highlight=False)


def plain_text(blocks: tuple[Block, ...]) -> str:
    """Format texts and tables as lines, with a blank line around each table."""
    texts = (plain_table(block) if isinstance(block, Table) else block for block in _spaced(blocks))
    return "".join(f"{text}\n" for text in texts)


def _spaced(blocks: tuple[Block, ...]) -> Iterator[Block]:
    before: Block | None = None
    for block in blocks:
        if before is not None and (isinstance(block, Table) or isinstance(before, Table)):
            yield ""
        yield block
        before = block


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "") not in {"dumb", "unknown"}


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"cannot write the standard output: {reason}") from error


def _rich_console(stream: TextIO) -> RichConsole:
    from rich.console import Console as RichConsole

    return RichConsole(file=stream, highlight=False)


def _print_richly(console: RichConsole, blocks: tuple[Block, ...]) -> None:
    from rich.text import Text

    for block in _spaced(blocks):
        if isinstance(block, Table):
            console.print(rich_table(block))
        else:
            console.print(Text(block), soft_wrap=True)
