"""Callbacks that are called with measurements as they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from intarsia.autoschedule.measuring.record_file import mend
from intarsia.autoschedule.measuring.schedule_record import record_of
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.measure_result import MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import record_to_text
from intarsia.support.files import output_error

OnMeasured: TypeAlias = Callable[[SearchTask, Sequence[LoopState], Sequence[MeasureResult]], None]
"""Called with a task, states of it that were measured, and the measurement of each state."""


class RecordToFile:
    """Appends measurements to a v0.6 log, each record flushed: a kill loses at most the line being written.

    An existing file keeps its records. A torn last line of a writer that was killed is removed
    before the first record is written.

    Args:
        path: File to append to.
        on_torn: Callback, called with a torn line that was removed.
    """

    def __init__(self, path: str | Path, on_torn: Callable[[str], object] | None = None) -> None:
        self.path = Path(path)
        self._on_torn = on_torn
        self._is_mended = False

    def __call__(
        self, task: SearchTask, states: Sequence[LoopState], measurements: Sequence[MeasureResult]
    ) -> None:
        """Append the measurements.

        Raises:
            OutputError: The file system refused.
        """
        try:
            self._mend()
            with self.path.open("a") as file:
                for state, measured in zip(states, measurements, strict=True):
                    file.write(record_to_text(record_of(task, state, measured)))
                    file.flush()
        except OSError as error:
            raise output_error(self.path, error) from error

    def _mend(self) -> None:
        if self._is_mended:
            return
        torn = mend(self.path)
        self._is_mended = True
        if torn and self._on_torn is not None:
            self._on_torn(torn)
