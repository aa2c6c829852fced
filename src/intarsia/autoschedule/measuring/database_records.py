"""Measurements of schedules in the database of all measurements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from intarsia.autoschedule.measuring.error_numbers import error_number
from intarsia.autoschedule.measuring.prepared_tasks import contents_parts
from intarsia.autoschedule.measuring.schedule_measurement import ScheduleMeasurement
from intarsia.autoschedule.measuring.schedule_record import FAILED_SECONDS
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.database import Database, Hint, Measurement, MeasureRecord
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.measure.measure_result import MeasureResult
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record, RecordResult
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.loop_state.step_record import step_to_json
from intarsia.native.lowering import infer_bound
from intarsia.support.digest import digest_text
from intarsia.support.errors import UsageError
from intarsia.target import Host
from intarsia.transform import PassSettings

KIND: Final = "schedule"
"""The kind of candidate that a schedule is."""


def schedule_workload(dag: ComputeDAG) -> str:
    """The digest of what a DAG computes; names do not count."""
    return digest_text(("te", structural_key(dag)))


def schedule_target(threads: int) -> str:
    """The target that schedules are kept for."""
    return f"native -threads={threads}"


def schedule_candidate(state: LoopState, layout: int) -> Candidate:
    """A schedule as plain data.

    Args:
        state: With every split length chosen.
        layout: Number of the layout rewrite option.
    """
    steps: PlainData = [step_to_json(step) for step in state.transform_steps]
    return Candidate(KIND, {"steps": steps, "layout": layout})


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleDatabase:
    """What was measured of schedules, by what is computed, threads and machine.

    Every method may raise DatabaseError.

    Attributes:
        database: Holds it, beside other measurements.
        host: This machine.
        settings: Settings of the passes on loops, under which schedules are built; default: those of this
            thread.
    """

    database: Database
    host: Host
    settings: PassSettings = field(default_factory=PassSettings.current)
    _noted: set[str] = field(default_factory=set)

    def keep(
        self, task: SearchTask, states: Sequence[LoopState], measurements: Sequence[ScheduleMeasurement]
    ) -> None:
        """Keep measurements; those of a schedule that is there already add to its own.

        It is an OnMeasured.
        """
        place = self._workload(task), schedule_target(task.hardware.num_cores), self.host.digest
        records = [
            MeasureRecord(*place, KIND, schedule_candidate(state, task.layout_rewrite_option).text, (each,))
            for state, each in zip(states, map(_kept, measurements), strict=True)
        ]
        self._note(place[0], task)
        self.database.commit_many(records)

    def _note(self, workload: str, task: SearchTask) -> None:
        """Say once what the digests stand for."""
        if workload not in self._noted:
            self.database.add_host(self.host)
            self.database.add_workload(workload, f"schedule of {task.dag.outputs[0].buffer.name}")
            self._noted.add(workload)

    def records(self, task: SearchTask) -> tuple[Record, ...]:
        """All schedules of a task measured on this machine as records, oldest measurement first.

        A schedule measured several times is one record with all costs that count.
        """
        target = schedule_target(task.hardware.num_cores)
        found = [
            each
            for each in self.database.records_of(self._workload(task))
            if (each.target, each.host, each.kind) == (target, self.host.digest, KIND)
        ]
        found.sort(key=lambda each: (each.timestamp, each.key))
        records = (_record(task, each) for each in found)
        return tuple(record for record in records if record is not None)

    def hints(self, task: SearchTask, k: int) -> tuple[LoopState, ...]:
        """At most `k` schedules that were good on other machines, to be measured first on this one.

        They have no costs: what one costs elsewhere says nothing of here. Those that the task does not allow
        are passed over.
        """
        target = schedule_target(task.hardware.num_cores)
        hints = self.database.hints(self._workload(task), target, k, self.host.digest)
        states = (_hinted(task, hint) for hint in hints if hint.kind == KIND)
        return tuple(state for state in states if state is not None)

    def _workload(self, task: SearchTask) -> str:
        """With given contents of placeholders or pass settings, on which times depend, it is another one."""
        digest = schedule_workload(task.dag)
        parts = [*contents_parts(task), *self.settings.digest_parts]
        return digest_text((digest, *parts)) if parts else digest


def _kept(measured: ScheduleMeasurement) -> Measurement:
    seconds = measured.build_seconds + measured.run_seconds
    return Measurement(
        MeasureResult(measured.costs, measured.error, measured.message, seconds, measured.timestamp)
    )


def _record(task: SearchTask, kept: MeasureRecord) -> Record | None:
    """What is kept as a record of the log; None of another layout option, or of what is no schedule."""
    try:
        trace = json.loads(kept.trace)
        if trace["layout"] != task.layout_rewrite_option:
            return None
        steps = tuple(map(step_from_json, trace["steps"]))
    except (ValueError, KeyError, TypeError, UsageError):  # of a later version
        return None
    result = kept.result
    costs = result.costs or (FAILED_SECONDS,)
    number = error_number(result.error)
    return Record(
        task.record_task, steps, RecordResult(costs, number, result.wall_seconds, int(kept.timestamp))
    )


def _hinted(task: SearchTask, hint: Hint) -> LoopState | None:
    """The schedule of a hint, whatever its layout option, with the ranges of all loops."""
    try:
        steps = map(step_from_json, json.loads(hint.trace)["steps"])
        return infer_bound(task.dag, LoopState.replay(task.dag, steps))
    except (ValueError, KeyError, TypeError, UsageError):  # of a later version
        return None
