"""The schedule log of a machine: the best schedule of each kernel, stored in the database."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from intarsia.measure.database import Database, RunRecord
from intarsia.support.digest import digest_text
from intarsia.target import Host
from intarsia.transform import PassSettings

if TYPE_CHECKING:  # importing the search is slow, and `is_empty` does not need it
    from intarsia.autoschedule.extraction import ExtractedTask
    from intarsia.autoschedule.measuring import OnMeasured, ScheduleDatabase
    from intarsia.native.loop_state import LoopState
    from intarsia.native.loop_state.record import Record
    from intarsia.native.schedule import ScheduleLog

_VERSION: Final = 1
_HINTS: Final = 3
"""Maximum number of schedules of other machines that are measured per kernel."""


@dataclass(frozen=True, slots=True)
class KeptSchedule:
    """Result of the schedule search of a kernel.

    Attributes:
        history: JSON text of the steps of the best schedule; None where none is faster than the default.
        seconds: Seconds per call with the best schedule.
        default_seconds: Seconds per call with the default schedule, measured interleaved with the best.
        trials: Number of schedules that had been measured then.
    """

    history: str | None
    seconds: float
    default_seconds: float
    trials: int


@dataclass(frozen=True, slots=True)
class SearchCharge:
    """What a search of schedules counts for in the budget of its run.

    Attributes:
        seconds: Wall time.
        trials: Number of measured schedules.
    """

    seconds: float
    trials: int


@dataclass(frozen=True)
class ScheduleHistory:
    """The schedule log of one machine.

    Attributes:
        database: Database of the log, or None.
        host: Machine with its toolchains: results of other versions are ignored.
        wall_clock: Clock of Unix time in seconds.
        settings: Settings of the passes on loops, under which schedules are built; default: those of this
            thread.
    """

    database: Database | None
    host: Host
    wall_clock: Callable[[], float] = time.time
    settings: PassSettings = field(default_factory=PassSettings.current)

    def find(self, task: ExtractedTask) -> KeptSchedule | None:
        """Return the stored result of a kernel."""
        data = self._read(self._result_key(task))
        try:
            return None if data is None else KeptSchedule(**data)
        except TypeError:  # of another version
            return None

    def keep(self, task: ExtractedTask, kept: KeptSchedule) -> None:
        """Store the result of the schedule search of a kernel.

        Raises:
            DatabaseError: It cannot be written.
        """
        self._write(self._result_key(task), task, asdict(kept))
        self._write(self._key("any schedule"), task, {})

    def records(self, task: ExtractedTask) -> tuple[Record, ...]:
        """Return the measurements of a kernel in their order, with its stored result as a confirmation."""
        if self._measured is None:
            return ()
        records = self._measured.records(task.task)
        confirmed = self._confirmed_record(task)
        if confirmed is None:
            return records
        at = confirmed.result.timestamp
        earlier = [record for record in records if record.result.timestamp <= at]
        return *earlier, confirmed, *records[len(earlier) :]

    def _confirmed_record(self, task: ExtractedTask) -> Record | None:
        """Return the stored result of a kernel as a record."""
        from intarsia.native.loop_state.record import Record, RecordResult
        from intarsia.native.loop_state.step_json import step_from_json

        key = self._result_key(task)
        kept, run = self.find(task), None if self.database is None else self.database.find_run(key)
        if kept is None or run is None:
            return None
        steps = task.default_state.transform_steps
        if kept.history is not None:
            steps = tuple(map(step_from_json, json.loads(kept.history)))
        result = RecordResult((kept.seconds,), 0, 0.0, int(run.finished_at))
        return Record(task.task.record_task, steps, result, is_confirmed=True)

    def hints(self, task: ExtractedTask) -> tuple[LoopState, ...]:
        """Return schedules of a kernel that were fast on other machines."""
        return () if self._measured is None else self._measured.hints(task.task, _HINTS)

    @property
    def on_measured(self) -> tuple[OnMeasured, ...]:
        """Callback that stores measurements, if there is a database."""
        return () if self._measured is None else (self._measured.keep,)

    @property
    def _measured(self) -> ScheduleDatabase | None:
        from intarsia.autoschedule.measuring import ScheduleDatabase

        return None if self.database is None else ScheduleDatabase(self.database, self.host, self.settings)

    @property
    def is_empty(self) -> bool:
        """Whether this machine has no stored schedule at all: then no kernel needs to be looked up."""
        return self._read(self._key("any schedule")) is None

    def make_log(self, tasks: Iterable[ExtractedTask]) -> ScheduleLog:
        """Return a log of the best stored schedules of kernels, without those where the default is best."""
        from intarsia.native.schedule import ScheduleLog

        results = ((task.key, self.find(task)) for task in tasks)
        return ScheduleLog({key: kept.history for key, kept in results if kept is not None and kept.history})

    def spent(self, tasks: Sequence[ExtractedTask]) -> float:
        """Return the seconds spent so far on the schedule search of a model's kernels."""
        data = self._read(self._spent_key(tasks))
        return float(data["seconds"]) if data and isinstance(data.get("seconds"), int | float) else 0.0

    def keep_spent(self, tasks: Sequence[ExtractedTask], seconds: float) -> None:
        """Store the total seconds spent on the schedule search of a model's kernels.

        Raises:
            DatabaseError: It cannot be written.
        """
        self._write(self._spent_key(tasks), tasks[0], {"seconds": seconds})

    def _spent_key(self, tasks: Sequence[ExtractedTask]) -> str:
        device = _device_parts(tasks[0]) if tasks else ()
        return self._key("spent", *sorted(task.key for task in tasks), *device)

    def find_charge(self, question: Sequence[object]) -> SearchCharge | None:
        """Return what the search of a run counts for, if that run has finished it; None otherwise.

        Args:
            question: Program and settings of the search, by which it differs from others.
        """
        data = self._read(self._key("charge", *question))
        try:
            return None if data is None else SearchCharge(**data)
        except TypeError:  # of another version
            return None

    def keep_charge(
        self, question: Sequence[object], tasks: Sequence[ExtractedTask], charge: SearchCharge
    ) -> None:
        """Store what the search of a run counts for, so that a resumed run counts the same.

        Raises:
            DatabaseError: It cannot be written.
        """
        self._write(self._key("charge", *question), tasks[0], asdict(charge))

    def _result_key(self, task: ExtractedTask) -> str:
        return self._key("schedule", task.key, task.task.hardware.num_cores, *_device_parts(task))

    def _key(self, *parts: object) -> str:
        return digest_text([str(_VERSION), self.host.digest, *map(str, parts), *self.settings.digest_parts])

    def _read(self, key: str) -> dict[str, Any] | None:
        record = None if self.database is None else self.database.find_run(key)
        try:
            data = None if record is None else json.loads(record.outcome)
        except ValueError:
            return None
        return data if isinstance(data, dict) else None

    def _write(self, key: str, task: ExtractedTask, data: dict[str, Any]) -> None:
        from intarsia.measure.schedules.kernel_workload import kernel_digest

        if self.database is not None:
            workload, text = kernel_digest(task.task.dag), json.dumps(data, separators=(",", ":"))
            self.database.keep_run(RunRecord(key, workload, self.host.digest, self.wall_clock(), text))


def _device_parts(task: ExtractedTask) -> tuple[str, ...]:
    """Return the parts of a key by which a kernel for a GPU differs from the same one for the CPU."""
    return ("gpu",) if task.task.hardware.is_gpu else ()
