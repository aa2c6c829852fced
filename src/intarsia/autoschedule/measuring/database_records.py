"""Read and write measurements of schedules in the database of measurements."""

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
    """Return the digest of a DAG's computation; names do not count."""
    return digest_text(("te", structural_key(dag)))


def schedule_target(threads: int) -> str:
    """Return the target under which schedules for a number of threads are stored."""
    return f"native -threads={threads}"


def schedule_candidate(state: LoopState, layout: int) -> Candidate:
    """Return a schedule as plain data.

    Args:
        state: State with every split length chosen.
        layout: Number of the layout rewrite option.
    """
    steps: PlainData = [step_to_json(step) for step in state.transform_steps]
    return Candidate(KIND, {"steps": steps, "layout": layout})


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleDatabase:
    """Measurements of schedules by computation, number of threads and machine.

    Every method may raise DatabaseError.

    Attributes:
        database: Database that holds them among other measurements.
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
        """Store measurements; a schedule that is stored already gets them as further measurements.

        The method is an OnMeasured.
        """
        key = self._workload(task), schedule_target(task.hardware.num_cores), self.host.digest
        records = [
            MeasureRecord(
                *key, KIND, schedule_candidate(state, task.layout_rewrite_option).text, (measurement,)
            )
            for state, measurement in zip(states, map(_kept, measurements), strict=True)
        ]
        self._note(key[0], task)
        self.database.commit_many(records)

    def _note(self, workload: str, task: SearchTask) -> None:
        """Store the names behind the digests of the host and the workload, once each."""
        if workload not in self._noted:
            self.database.add_host(self.host)
            self.database.add_workload(workload, f"schedule of {task.dag.outputs[0].buffer.name}")
            self._noted.add(workload)

    def records(self, task: SearchTask) -> tuple[Record, ...]:
        """Return all schedules of a task measured on this machine as records, oldest measurement first.

        A schedule measured several times is a single record with all costs that count.
        """
        target = schedule_target(task.hardware.num_cores)
        stored = [
            record
            for record in self.database.records_of(self._workload(task))
            if (record.target, record.host, record.kind) == (target, self.host.digest, KIND)
        ]
        stored.sort(key=lambda record: (record.timestamp, record.key))
        records = (_record(task, record) for record in stored)
        return tuple(record for record in records if record is not None)

    def hints(self, task: SearchTask, k: int) -> tuple[LoopState, ...]:
        """Return at most `k` schedules that were good on other machines, to be measured first on this one.

        They have no costs: costs of another machine do not hold on this one. Schedules that the task does not
        allow are left out.
        """
        target = schedule_target(task.hardware.num_cores)
        hints = self.database.hints(self._workload(task), target, k, self.host.digest)
        states = (_hinted(task, hint) for hint in hints if hint.kind == KIND)
        return tuple(state for state in states if state is not None)

    def _workload(self, task: SearchTask) -> str:
        """Return the digest of a task's workload.

        Given contents of placeholders and pass settings change it, because times depend on them.
        """
        digest = schedule_workload(task.dag)
        parts = [*contents_parts(task), *self.settings.digest_parts]
        return digest_text((digest, *parts)) if parts else digest


def _kept(measured: ScheduleMeasurement) -> Measurement:
    seconds = measured.build_seconds + measured.run_seconds
    return Measurement(
        MeasureResult(measured.costs, measured.error, measured.message, seconds, measured.timestamp)
    )


def _record(task: SearchTask, kept: MeasureRecord) -> Record | None:
    """Return a stored record as one of the log; None if its layout option differs or it is no schedule."""
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
    """Return the schedule of a hint, whatever its layout option, with the ranges of all loops."""
    try:
        steps = map(step_from_json, json.loads(hint.trace)["steps"])
        return infer_bound(task.dag, LoopState.replay(task.dag, steps))
    except (ValueError, KeyError, TypeError, UsageError):  # of a later version
        return None
