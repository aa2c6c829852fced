"""Searching schedules of all native kernels of a model, within one budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from intarsia.autoschedule.cost_model import CostModel, DraftModel
from intarsia.autoschedule.extraction import ExtractedTask
from intarsia.autoschedule.features import Machine
from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.policy import PolicyOptions
from intarsia.autoschedule.scheduler import ScheduledTask, SchedulerOptions, SchedulerTable, TaskScheduler
from intarsia.driver.kernel_search import KernelSearch
from intarsia.driver.schedule_allowance import ScheduleAllowance
from intarsia.driver.schedule_history import KeptSchedule, ScheduleHistory
from intarsia.driver.schedule_model import ScheduleModel
from intarsia.driver.schedule_records import ScheduleProgress, ScheduleRow
from intarsia.native.schedule import ScheduleBook
from intarsia.support.callbacks import never, silent
from intarsia.support.errors import StoppedError, UsageError

SEARCH_SHARE: Final = 0.75
"""Share of the time for searching; the rest is for racing the best schedules against the default ones."""
_TRIAL_SECONDS: Final = 0.1
"""About what it takes to find, build and measure a schedule."""
_ROUNDS: Final = 4
"""So many rounds a kernel should get, on average."""
_ROUND: Final = (16, 64)
"""The least and the most trials of a round."""
_GENERATION: Final = 2
"""Programs of a generation for each trial of a round: then finding takes as long as measuring."""
_MANY: Final = 10**9
"""Trials, where only the time is limited."""


@dataclass(frozen=True, eq=False)
class ScheduleSearch:
    """What is searched with, and how long.

    Attributes:
        measurer: Measures schedules.
        history: What was measured before, what has won, and how long was searched.
        peak: Floating-point operations in a second that the machine reaches.
        seconds: For all of it.
        trials: Schedules of all kernels at most, those counted that are known.
        seed: Of the search.
        options: How the kernels are searched; by the time there is, if not given.
        samples: File of what the cost model learns, also from other models; None for none.
        on_measured: Callbacks that are called with each round's measurements, finalists included.
        on_confirmed: Callbacks that are called with the finalists' measurements only.
        on_progress: Told of each round.
        should_stop: A yes ends the search; what was measured is kept.
    """

    measurer: ScheduleMeasurer
    history: ScheduleHistory
    peak: float
    seconds: float = math.inf
    trials: int | None = None
    seed: int = 0
    options: PolicyOptions | None = None
    samples: Path | None = None
    on_measured: Sequence[OnMeasured] = ()
    on_confirmed: Sequence[OnMeasured] = ()
    on_progress: Callable[[ScheduleProgress], object] = silent
    should_stop: Callable[[], bool] = never


@dataclass(frozen=True, slots=True)
class TunedSchedules:
    """Schedules that were searched for the kernels of a model.

    Attributes:
        book: Those that are faster than the default ones.
        rows: The kernels, those with the most time first.
        trials: Schedules that were measured in this run.
        seconds: Duration of the search.
    """

    book: ScheduleBook
    rows: tuple[ScheduleRow, ...]
    trials: int
    seconds: float


def tune_schedules(tasks: Sequence[ExtractedTask], search: ScheduleSearch) -> TunedSchedules:
    """Search schedules of a model's kernels; those that are faster than the default ones make a book.

    All kernels share one cost model, which begins with a draft. Each kernel's default schedule is measured
    first; then those get trials from which the whole model is expected to gain most (Ansor, section 6). At
    the end the best of each kernel race against its default schedule.

    Args:
        tasks: The kernels, at least one.
        search: With what, and how long.

    Raises:
        UsageError: There is no kernel.
        IntarsiaError: Measuring is impossible, or a result cannot be kept.
    """
    if not tasks:
        raise UsageError("the program has no native kernels", help="schedules are of native kernels")
    spent = search.history.spent(tasks)
    machine = Machine.of_isa(tasks[0].isa, tasks[0].task.hardware.num_cores)
    model = ScheduleModel.open(machine, search.seed, search.samples)
    allowance = ScheduleAllowance(max(0.0, search.seconds - spent), should_stop=search.should_stop)
    run = _Run(search, allowance, model, _kernels(tasks, search, allowance, model.model, DraftModel(machine)))
    run.take_up()
    if allowance.seconds:
        with suppress(StoppedError):  # what was measured before is kept
            run.search_all()
            run.settle_all()
        model.save()
        search.history.keep_spent(tasks, max(spent + allowance.spent, run.used_up))
    return run.result()


@dataclass(eq=False)
class _Run:
    """One search of all kernels."""

    search: ScheduleSearch
    allowance: ScheduleAllowance
    model: ScheduleModel
    kernels: Sequence[KernelSearch]
    kept: dict[str, KeptSchedule] = field(default_factory=dict)
    known: list[tuple[float, ...]] = field(default_factory=list)
    told: int = 0

    def take_up(self) -> None:
        """Know what was measured before, and what has won."""
        history = self.search.history
        for each in self.kernels:
            kept, records = history.find(each.extracted), history.records(each.extracted)
            if kept is not None:
                self.kept[each.extracted.key] = kept
            is_asked = self.allowance.seconds > 0
            is_new = each.extracted.task.workload_key not in self.model.learned
            self.known.append(each.preload(records, teach=is_asked and is_new))
        if self.search.trials is not None:
            self.allowance.trials = max(0, self.search.trials - sum(map(len, self.known)))

    def search_all(self) -> None:
        """Measure schedules until time or trials are spent, or nothing new is found."""
        scheduled = [
            ScheduledTask(each, each.extracted.name, each.extracted.weight, max(0, each.extracted.flop_count))
            for each in self.kernels
        ]
        count, seconds = len(scheduled), self.allowance.seconds
        options = SchedulerOptions(trials_per_round=_round_size(seconds, count))
        chance = Random(self.search.seed)  # noqa: S311  # choices among equals
        scheduler = TaskScheduler(scheduled, options, rng=chance, on_round=[self._told])
        for number, costs in enumerate(self.known):
            scheduler.restore(number, costs)
        whole, self.allowance.seconds = seconds, seconds * SEARCH_SHARE
        scheduler.tune(_MANY if math.isinf(self.allowance.trials) else max(count, int(self.allowance.trials)))
        self.allowance.seconds = whole

    def settle_all(self) -> None:
        """Race the best schedules against the default ones, first where most can be gained."""
        has_raced = False
        for kernel in sorted(self.kernels, key=lambda each: -each.expected_gain):
            before = self.kept.get(kernel.extracted.key)
            if before is not None and before.trials == kernel.trials:
                continue
            if self.search.should_stop() or (has_raced and self.allowance.is_over):
                return
            has_raced = True
            kept = kernel.race_finalists()
            if kept is not None:
                self.search.history.keep(kernel.extracted, kept)
                self.kept[kernel.extracted.key] = kept

    @property
    def used_up(self) -> float:
        """The time that a search counts as, however little is left, if that is what has ended it."""
        is_limited = self.search.trials is not None and self.allowance.used >= self.allowance.trials
        has_ended = not is_limited and not self.search.should_stop() and math.isfinite(self.search.seconds)
        return self.search.seconds if has_ended else 0.0

    def result(self) -> TunedSchedules:
        """What was found, in this search and in those before."""
        rows = [
            each.progress_row(self.search.peak, self.kept.get(each.extracted.key)) for each in self.kernels
        ]
        book = ScheduleBook({key: kept.history for key, kept in self.kept.items() if kept.history})
        return TunedSchedules(book, tuple(sorted(rows, key=_time)), self.allowance.used, self.allowance.spent)

    def _told(self, table: SchedulerTable) -> None:
        used, fraction = self.allowance.used, self.allowance.fraction
        if used > self.told:
            self.told = used
            row = self.kernels[table.tuned].progress_row(self.search.peak)
            self.search.on_progress(ScheduleProgress(row, used, table.objective, fraction))


def _kernels(
    tasks: Sequence[ExtractedTask],
    search: ScheduleSearch,
    allowance: ScheduleAllowance,
    model: CostModel,
    draft: CostModel,
) -> list[KernelSearch]:
    """Those with the most work first: they are the first to be measured."""
    size = _round_size(allowance.seconds, len(tasks))
    quick = PolicyOptions(evolutionary_search_population=_GENERATION * size, sample_init_min_population=size)
    ordered = sorted(tasks, key=lambda task: -task.weight * max(task.flop_count, task.bytes_moved))
    return [
        KernelSearch(
            task,
            model,
            draft,
            search.measurer,
            allowance,
            search.seed,
            search.options or quick,
            search.on_measured,
            search.on_confirmed,
            search.history.hints(task),
        )
        for task in ordered
    ]


def _round_size(seconds: float, kernels: int) -> int:
    """Trials of a round: fewer where there is little time for each kernel."""
    if math.isinf(seconds):
        return _ROUND[1]
    return min(max(int(seconds / (_TRIAL_SECONDS * _ROUNDS * kernels)), _ROUND[0]), _ROUND[1])


def _time(row: ScheduleRow) -> float:
    """So that those with the most time in a run of the model come first."""
    return -row.weight * (row.default_seconds or row.seconds or 0.0)
