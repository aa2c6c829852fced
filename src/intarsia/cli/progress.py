"""Showing the progress of a tuning run: a bar on a terminal, one line for each step otherwise."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from intarsia.tune.records import Progress, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console as RichConsole

_WORDS = {
    Stage.IMPORT: "importing the model",
    Stage.COMPILE: "compiling",
    Stage.REFERENCE: "computing the reference result",
    Stage.VERIFY: "verifying",
    Stage.MEASURE: "measuring",
}


def step_text(progress: Progress) -> str:
    """What is being done, in words: measuring openvino."""
    return f"{_WORDS[progress.stage]} {progress.candidate}".rstrip()


def no_progress(_: Progress) -> None:
    """Shows nothing."""


class LineProgress:
    """Writes a line when a new step begins: [12.3s] measuring openvino.

    Args:
        stream: Where to.
        clock: Where seconds are read from.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._start = clock()
        self._last = ""

    def __call__(self, progress: Progress) -> None:
        """Take one report."""
        step = step_text(progress)
        if step != self._last:
            self._last = step
            self._stream.write(f"[{self._clock() - self._start:.1f}s] {step}\n")
            self._stream.flush()


class BarProgress:
    """Draws one line that changes: spinner, step, bar, elapsed time; it disappears at the end.

    Args:
        console: The terminal.
    """

    def __init__(self, console: RichConsole) -> None:
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
        )
        self._bar = RichProgress(*columns, console=console, transient=True)
        self._task = self._bar.add_task("", total=1.0)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Take one report."""
        self._bar.update(self._task, description=step_text(progress), completed=progress.fraction)
