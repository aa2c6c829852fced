"""Read and write measurements of schedules in the database of measurements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from intarsia.autoschedule.measuring.error_numbers import error_number
from intarsia.autoschedule.measuring.schedule_record import FAILED_SECONDS
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.database import Database, Hint, MeasureRecord
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.schedules.kernel_workload import KIND, KernelWorkload, ScheduleInput, schedule_target
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record, RecordResult
from intarsia.native.loop_state.step_json import step_from_json
from intarsia.native.lowering import infer_bound
from intarsia.native.machine.isa import Isa
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.transform import PassSettings


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
    _workloads: dict[SearchTask, KernelWorkload] = field(default_factory=dict)

    def keep(
        self, task: SearchTask, states: Sequence[LoopState], measurements: Sequence[MeasureResult]
    ) -> None:
        """Store measurements; a schedule that is stored already gets them as further measurements.

        The method is an OnMeasured.
        """
        workload, threads, layout = self._workload(task), task.hardware.num_cores, task.layout_rewrite_option
        records = [
            MeasureRecord.of(ScheduleInput.of(workload, threads, state, layout), self.host.digest, measured)
            for state, measured in zip(states, measurements, strict=True)
        ]
        self._note(workload)
        self.database.commit_many(records)

    def _note(self, workload: KernelWorkload) -> None:
        """Store the names behind the digests of the host and the workload, once each."""
        if workload.digest not in self._noted:
            self.database.add_host(self.host)
            self.database.add_workload(workload.digest, workload.name)
            self._noted.add(workload.digest)

    def records(self, task: SearchTask) -> tuple[Record, ...]:
        """Return all schedules of a task measured on this machine as records, oldest measurement first.

        A schedule measured several times is a single record with all costs that count.
        """
        target = str(_target_of(task))
        stored = [
            record
            for record in self.database.records_of(self._workload(task).digest)
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
        target = str(_target_of(task))
        hints = self.database.hints(self._workload(task).digest, target, k, self.host.digest)
        states = (_hinted(task, hint) for hint in hints if hint.kind == KIND)
        return tuple(state for state in states if state is not None)

    def _workload(self, task: SearchTask) -> KernelWorkload:
        if task not in self._workloads:
            is_for_gpu = task.hardware.is_gpu
            workload = KernelWorkload(
                task.dag, Isa.host(), task.task_inputs, self.settings, is_for_gpu=is_for_gpu
            )
            self._workloads[task] = workload
        return self._workloads[task]


def _target_of(task: SearchTask) -> Target:
    return schedule_target(task.hardware.num_cores, is_for_gpu=task.hardware.is_gpu)


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
