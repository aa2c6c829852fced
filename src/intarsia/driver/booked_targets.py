"""Native with a schedule log as one more target: with schedules searched now, or stored ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from intarsia.autoschedule.extraction import extract_tasks
from intarsia.autoschedule.tuning.schedule_log import ScheduleLogs
from intarsia.autoschedule.tuning.schedule_records import ScheduleRow
from intarsia.driver.progress import Progress, TuneStage
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.support.errors import CompileError, ModelError, UsageError
from intarsia.target import Host, Target
from intarsia.toolchain import toolchain, usable_toolchains
from intarsia.toolchain.native.toolchain import Native


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """Request of a schedule search, with its limits.

    Attributes:
        seconds: Total seconds of schedule search of this model's kernels on this machine, earlier runs
            included.
        trials: Maximum number of measured schedules, earlier runs included; None for no limit.
    """

    seconds: float
    trials: int | None


class BookedTargets(NamedTuple):
    """Targets of a run, with the rows of their schedule search.

    Attributes:
        targets: Requested targets, and native with schedule records if there are any.
        rows: Kernels of the schedule search, if there was one.
    """

    targets: tuple[Target, ...]
    rows: tuple[ScheduleRow, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BookedRun:
    """What schedules are searched with.

    Attributes:
        module: The program.
        host: This machine.
        database: Where measurements are kept, or None.
        seed: Of the search.
        report: Told of progress.
        on_note: Told on the side.
        should_stop: A yes ends the search.
    """

    module: IRModule
    host: Host
    database: Database | None
    seed: int
    report: Callable[[Progress], object]
    on_note: Callable[[str], None]
    should_stop: Callable[[], bool]

    def booked(self, targets: Sequence[Target], request: ScheduleRequest | None) -> BookedTargets:
        """Add native with the best schedules: searched, if that was asked for, else those known already.

        A book is kept where builds find it. Plain native stays among the targets: nothing gets slower.

        Raises:
            UsageError: Schedules were asked for, and native is not among the targets.
            MissingToolchainError: They were asked for, and native is not usable here.
            IntarsiaError: Measuring is impossible, or a result cannot be kept.
        """
        native = next((each for each in targets if _is_plain_native(each)), None)
        if request is None and (native is None or not _is_usable()):
            return BookedTargets(tuple(targets))
        if native is None:
            raise UsageError(
                "schedules are of native kernels, and native is not among the targets",
                help="add --target native, or leave out --schedules",
            )
        toolchain(Native.name)
        try:
            tasks = extract_tasks(self.module, native)
        except (CompileError, ModelError) as error:
            if request is not None:
                self.on_note(f"no schedules are searched: {error.problem}")
            return BookedTargets(tuple(targets))
        if request is not None:
            self.report(Progress(TuneStage.SCHEDULES))
        logs = ScheduleLogs(
            self.host,
            self.database,
            0.0 if request is None else request.seconds,
            None if request is None else request.trials,
            self.seed,
            lambda progress: self.report(
                Progress(TuneStage.SCHEDULES, progress.fraction, scheduled=progress)
            ),
            self.on_note,
            self.should_stop,
        )
        log, rows = logs.make(tasks)
        if not len(log):
            return BookedTargets(tuple(targets), rows)
        return BookedTargets((*targets, native.with_options(schedules=log.digest)), rows)


def _is_plain_native(target: Target) -> bool:
    return target.toolchain == Native.name and target.option("schedules") is None


def _is_usable() -> bool:
    return any(each.name == Native.name for each in usable_toolchains())
