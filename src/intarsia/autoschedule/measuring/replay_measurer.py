"""Replay measurements from a log, without hardware."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from intarsia.autoschedule.measuring.schedule_record import measurement_of
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record
from intarsia.native.loop_state.step_record import step_to_json
from intarsia.native.lowering import infer_bound
from intarsia.support.errors import UsageError

_UNKNOWN = MeasureResult((), MeasureError.UNKNOWN, "this schedule is not in the log")


class ReplayMeasurer:
    """Returns the measurements of a log, so that a run is repeated with the same decisions.

    A schedule is looked up by its history, or by the loops that it leads to. The measurements of a schedule
    are returned in the order of the log, the last of them repeatedly. A schedule that the log lacks fails as
    UNKNOWN.

    Args:
        records: Records of a log or of a database, in the order in which they were measured.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._records: dict[str, list[Record]] = {}
        for record in records:
            self._records.setdefault(record.task.workload_key, []).append(record)
        self._by_steps: dict[tuple[str, str], str] = {}
        self._answers: dict[tuple[str, str], list[MeasureResult]] = {}
        self._read: set[str] = set()

    def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """See ScheduleMeasurer.measure."""
        self._read_records(task)
        return [self._answer(task.workload_key, state) for state in states]

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """See ScheduleMeasurer.remeasure."""
        return self.measure(task, states)

    def _answer(self, key: str, state: LoopState) -> MeasureResult:
        loops = self._by_steps.get((key, _steps(state)))
        answers = self._answers.get((key, state.text if loops is None else loops))
        if not answers:
            return _UNKNOWN
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _read_records(self, task: SearchTask) -> None:
        """Replay the histories of a task's records, once; those that its DAG does not allow are left out."""
        if task.workload_key in self._read:
            return
        self._read.add(task.workload_key)
        for record in self._records.get(task.workload_key, ()):
            option = record.task.layout_rewrite_option
            if option is not None and option != task.layout_rewrite_option:
                continue
            try:
                state = infer_bound(task.dag, LoopState.replay(task.dag, record.steps))
            except UsageError:
                continue
            self._by_steps[task.workload_key, _steps(state)] = state.text
            answers = self._answers.setdefault((task.workload_key, state.text), [])
            answers.append(measurement_of(record))


def _steps(state: LoopState) -> str:
    return json.dumps([step_to_json(step) for step in state.transform_steps])
