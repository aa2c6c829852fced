"""Native with a schedule book as one more target: with schedules searched now, or known from before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.autoschedule.extraction import ExtractedTask, extract_tasks
from intarsia.autoschedule.measuring import MeasureOptions, RunTiming
from intarsia.autoschedule.measuring.pool_measurer import PoolMeasurer
from intarsia.driver.records import Progress, TuneStage
from intarsia.driver.schedule_history import ScheduleHistory
from intarsia.driver.schedule_records import BookedTargets, ScheduleRequest, ScheduleRow
from intarsia.driver.schedules import ScheduleSearch, tune_schedules
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.native.peak import measured_peak
from intarsia.native.schedule import ScheduleBook
from intarsia.support.errors import CompileError, ModelError, UsageError
from intarsia.target import Host, Target
from intarsia.toolchain import toolchain, usable_toolchains
from intarsia.toolchain.native.caches import schedule_folder
from intarsia.toolchain.native.toolchain import Native

_EVICTED: Final = 2
"""Operands of so many times the size of the second-level caches are not found there again."""


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
        book, rows = self.book(tasks, request)
        if not len(book):
            return BookedTargets(tuple(targets), rows)
        return BookedTargets((*targets, native.with_options(schedules=book.digest)), rows)

    def book(
        self, tasks: Sequence[ExtractedTask], request: ScheduleRequest | None
    ) -> tuple[ScheduleBook, tuple[ScheduleRow, ...]]:
        """The best schedules of kernels: searched, if that is asked for, else those known already.

        A book that is not empty is kept where builds find it.

        Args:
            tasks: The kernels, at least one if schedules are searched.
            request: That schedules are searched, and how long.

        Raises:
            IntarsiaError: Measuring is impossible, or a result cannot be kept.
        """
        history = ScheduleHistory(self.database, self.host)
        book, rows = (
            (history.make_book(tasks), ()) if request is None else self._tuned(tasks, history, request)
        )
        if len(book):
            book.save(schedule_folder())
        return book, rows

    def _tuned(
        self, tasks: Sequence[ExtractedTask], history: ScheduleHistory, request: ScheduleRequest
    ) -> tuple[ScheduleBook, tuple[ScheduleRow, ...]]:
        self.report(Progress(TuneStage.SCHEDULES))
        isa, threads = tasks[0].isa, tasks[0].task.hardware.num_cores
        peak = measured_peak(isa, threads)
        options = MeasureOptions(RunTiming(operand_bytes=_EVICTED * threads * isa.caches.second))
        with PoolMeasurer.open(
            isa,
            options,
            on_measured=history.on_measured,
            on_wait=_once(self.on_note),
            should_stop=self.should_stop,
        ) as measurer:
            search = ScheduleSearch(
                measurer,
                history,
                peak,
                seconds=request.seconds,
                trials=request.trials,
                seed=self.seed,
                on_confirmed=history.on_measured,
                samples=schedule_folder() / f"samples-{self.host.digest}-{threads}.npz",
                on_progress=lambda each: self.report(
                    Progress(TuneStage.SCHEDULES, each.fraction, scheduled=each)
                ),
                should_stop=self.should_stop,
            )
            tuned = tune_schedules(tasks, search)
        return tuned.book, tuned.rows


def _is_plain_native(target: Target) -> bool:
    return target.toolchain == Native.name and target.option("schedules") is None


def _is_usable() -> bool:
    return any(each.name == Native.name for each in usable_toolchains())


def _once(on_note: Callable[[str], None]) -> Callable[[str], None]:
    """Tells the first note: whom a search waits for changes with each of its many measurements."""
    told: list[str] = []

    def tell(note: str) -> None:
        if not told:
            told.append(note)
            on_note(note)

    return tell
