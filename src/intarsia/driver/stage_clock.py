"""Wall-clock time of the stages of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from intarsia.driver.progress import Progress, TuneStage
from intarsia.report.run_records import StageSeconds
from intarsia.support.callbacks import silent


@dataclass(eq=False)
class StageClock:
    """Passes progress events on, and adds up the seconds of each stage.

    Attributes:
        report: Function that is called with each progress event.
        clock: Function that returns seconds.
    """

    report: Callable[[Progress], object] = silent
    clock: Callable[[], float] = time.perf_counter
    _seconds: dict[TuneStage, float] = field(default_factory=dict, init=False)
    _current: TuneStage | None = field(default=None, init=False)
    _since: float = field(default=0.0, init=False)

    def __call__(self, progress: Progress) -> None:
        """Count the time since the last event for the stage of that event."""
        self._count(progress.stage)
        self.report(progress)

    def records(self) -> tuple[StageSeconds, ...]:
        """Return the seconds of each stage so far, in the order in which they began."""
        self._count(self._current)
        return tuple(StageSeconds(stage.value, seconds) for stage, seconds in self._seconds.items())

    def _count(self, stage: TuneStage | None) -> None:
        now = self.clock()
        if self._current is not None:
            self._seconds[self._current] += now - self._since
        self._current, self._since = stage, now
        if stage is not None:
            self._seconds.setdefault(stage, 0.0)
