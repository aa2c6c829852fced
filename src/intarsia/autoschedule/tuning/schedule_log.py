"""The schedule log of the best schedules of a program's kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Final

from intarsia.autoschedule.extraction import ExtractedTask
from intarsia.autoschedule.measuring.pool_measurer import SCHEDULE_LIMITS, PoolMeasurer
from intarsia.autoschedule.tuning.schedule_history import ScheduleHistory
from intarsia.autoschedule.tuning.schedule_records import ScheduleProgress
from intarsia.autoschedule.tuning.search_schedules import (
    LEAST_SHARE,
    LEAST_WORK,
    ScheduleSearch,
    SearchedSchedules,
    search_schedules,
)
from intarsia.measure.database import Database
from intarsia.measure.schedules.kernel_timing import KernelTiming
from intarsia.measure.workers import Workers
from intarsia.native.host_rates import host_peak
from intarsia.native.roofline import Roofline
from intarsia.support.callbacks import never, silent
from intarsia.support.digest import digest_text
from intarsia.target import Host
from intarsia.toolchain.native.caches import schedule_folder
from intarsia.transform import PassSettings

_EVICTED: Final = 2
"""Ratio of the operands' bytes to the second-level caches from which a call finds no operand in them."""


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleLogs:
    """Makes schedule logs for programs on this machine.

    Attributes:
        host: This machine.
        database: Database of measurements, or None.
        seconds: Total seconds of schedule search of a program's kernels, earlier runs included; 0 to search
            nothing, and take stored schedules.
        trials: Maximum number of measured schedules, earlier runs included; None for no limit.
        seconds_each: Maximum seconds for each kernel that is chosen by what it can gain.
        seed: Random seed of the search.
        least_share: Least share of the time of all kernels that a searched kernel must be able to gain; 0 to
            search all kernels.
        on_progress: Callback that is called after each round of a kernel.
        on_note: Callback that is called with notes, such as that another process keeps the machine busy.
        should_stop: Function that returns true to end the search.
        workers: Workers of the run that the search is a part of; None to start some.
    """

    host: Host
    database: Database | None
    seconds: float
    trials: int | None = None
    seed: int = 0
    least_share: float = LEAST_SHARE
    on_progress: Callable[[ScheduleProgress], object] = silent
    on_note: Callable[[str], object] = silent
    should_stop: Callable[[], bool] = never
    workers: Workers | None = None
    seconds_each: float = math.inf

    def make(
        self, tasks: Sequence[ExtractedTask], seconds_in_program: Mapping[str, float] = MappingProxyType({})
    ) -> SearchedSchedules:
        """Return the best schedules of kernels, with the rows of a search if there was one.

        A log that is not empty is written where builds find it.

        Args:
            tasks: Kernels, at least one if schedules are searched.
            seconds_in_program: Seconds of a call of kernels with their default schedules within the program,
                by key; those of the others are measured alone.

        Raises:
            IntarsiaError: Measuring is impossible, or a result cannot be stored.
        """
        history = ScheduleHistory(self.database, self.host)
        if self.seconds:
            searched = self._search(tasks, history, seconds_in_program)
        else:
            searched = SearchedSchedules(history.make_log(tasks), (), 0, 0.0)
        if len(searched.log):
            searched.log.save(schedule_folder())
        return searched

    def _search(
        self,
        tasks: Sequence[ExtractedTask],
        history: ScheduleHistory,
        seconds_in_program: Mapping[str, float],
    ) -> SearchedSchedules:
        isa, hardware = tasks[0].isa, tasks[0].task.hardware
        threads = hardware.num_cores
        # Kernels of a GPU are all searched: what bounds them there is not measured.
        has_bounds = bool(self.least_share) and not hardware.is_gpu
        roofline = partial(Roofline.measured, isa, threads) if has_bounds else None
        operand_bytes = 0 if hardware.is_gpu else _EVICTED * threads * isa.caches.second
        timing = KernelTiming(operand_bytes=operand_bytes)
        machine = "gpu" if hardware.is_gpu else str(threads)

        def note(text: str) -> None:
            self.on_note(text)

        with PoolMeasurer.open(
            isa,
            replace(SCHEDULE_LIMITS, kernel=timing),
            lent=self.workers,
            on_measured=history.on_measured,
            on_wait=note,
            should_stop=self.should_stop,
        ) as measurer:
            search = ScheduleSearch(
                measurer,
                history,
                None if hardware.is_gpu else host_peak(isa, threads),
                seconds=self.seconds,
                seconds_each=self.seconds_each,
                trials=self.trials,
                seed=self.seed,
                roofline=roofline,
                least_share=self.least_share,
                least_work=LEAST_WORK,
                seconds_in_program=seconds_in_program,
                prepare=measurer.prepare,
                on_confirmed=history.on_measured,
                samples=schedule_folder() / samples_name(self.host, machine, history.settings),
                on_progress=self.on_progress,
                should_stop=self.should_stop,
            )
            return search_schedules(tasks, search)


def samples_name(host: Host, machine: str, settings: PassSettings) -> str:
    """Return the name of the file of the cost model's samples: costs depend on the passes on loops, too.

    Args:
        host: This machine.
        machine: Number of its threads, or "gpu".
        settings: Settings of the passes on loops.
    """
    suffix = f"-{digest_text(settings.digest_parts)}" if settings.digest_parts else ""
    return f"samples-{host.digest}-{machine}{suffix}.npz"
