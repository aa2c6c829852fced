"""Progress of a tuning run: a bar on a terminal, one line for each step otherwise."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from intarsia.cli.reports.schedule_table import schedule_text
from intarsia.driver.progress import Progress, TuneStage
from intarsia.support.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console as RichConsole

    from intarsia.measure.measure_progress import MeasureProgress

_WORDS = {
    TuneStage.IMPORT: "importing the model",
    TuneStage.REFERENCE: "computing the reference result",
    TuneStage.SCHEDULES: "searching schedules:",
    TuneStage.TUNE: "tuning the program:",
    TuneStage.SEARCH: "searching for partitions:",
    TuneStage.MEASURE: "measuring",
    TuneStage.RACE: "racing the best",
}

LINE_SECONDS = 5.0
"""Minimum seconds between lines of one stage."""


def step_text(progress: Progress) -> str:
    """Return the current step in words: measuring 3 of 12, 1 failed (crash), best 6.75 ms, 20 s left."""
    words = _WORDS[progress.stage]
    if progress.scheduled is not None:
        return f"{words} {schedule_text(progress.scheduled)}"
    if progress.measured is None or not progress.measured.total:  # nothing is to be measured yet
        return words.rstrip(":")
    return f"{words} {count_text(progress.measured)}"


def count_text(measured: MeasureProgress) -> str:
    """Return the progress of measurements in words: done, known, failed by kind, best and time left."""
    known_text = f"{measured.stored} known" if measured.stored else ""
    kinds = ", ".join(
        kind.value if count == 1 else f"{count} {kind.value}" for kind, count in measured.failed.items()
    )
    failed = f"{sum(measured.failed.values())} failed ({kinds})" if kinds else ""
    best = f"best {duration_text(measured.best)}" if math.isfinite(measured.best) else ""
    is_busy = 0 < measured.done - measured.stored < measured.total - measured.stored
    left = f"about {measured.seconds_left:.0f} s left" if is_busy else ""
    parts = (f"{measured.done} of {measured.total}", known_text, failed, best, left)
    return ", ".join(part for part in parts if part)


class LineProgress:
    """Writes a line when a stage begins, and every few seconds within it.

    Args:
        stream: Output stream.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._start = clock()
        self._last = ""
        self._stage: TuneStage | None = None
        self._last_time = self._start

    def __call__(self, progress: Progress) -> None:
        """Show a progress event."""
        now, step = self._clock(), step_text(progress)
        is_same = (
            progress.stage is self._stage and now - self._last_time < LINE_SECONDS and progress.fraction < 1
        )
        if is_same or step == self._last:
            return
        self._last, self._stage, self._last_time = step, progress.stage, now
        self._stream.write(f"[{now - self._start:.1f}s] {step}\n")
        self._stream.flush()


class BarProgress:
    """Draws one line that changes: spinner, step, bar, elapsed time; it disappears at the end.

    Args:
        console: Terminal.
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
        """Show a progress event."""
        self._bar.update(self._task, description=step_text(progress), completed=progress.fraction)
