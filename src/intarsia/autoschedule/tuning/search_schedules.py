"""Searching schedules of all native kernels of a model, within one budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final

from intarsia.autoschedule.cost_model import (
    CostModel,
    DraftModel,
    LearnedModel,
    StaticGpuModel,
    usual_gpu_model,
    usual_model,
)
from intarsia.autoschedule.extraction import ExtractedTask
from intarsia.autoschedule.features import Machine
from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.policy import PolicyOptions
from intarsia.autoschedule.scheduler import ScheduledTask, SchedulerOptions, SchedulerTable, TaskScheduler
from intarsia.autoschedule.task import SearchTask
from intarsia.autoschedule.task.facts_here import facts_here
from intarsia.autoschedule.tuning.kernel_search import KernelSearch
from intarsia.autoschedule.tuning.schedule_history import KeptSchedule, ScheduleHistory
from intarsia.autoschedule.tuning.schedule_model import ScheduleModel
from intarsia.autoschedule.tuning.schedule_records import ScheduleProgress, ScheduleRow
from intarsia.native.loop_state import LoopState
from intarsia.native.roofline import Roofline
from intarsia.native.schedule import ScheduleLog
from intarsia.support.callbacks import never, silent
from intarsia.support.errors import StoppedError, UsageError
from intarsia.tune.run_control import RunControl, WallMeter

SEARCH_SHARE: Final = 0.75
"""Share of the time for the search; the rest is for confirming the best schedules."""
_TRIAL_SECONDS: Final = 0.1
"""Estimate of the seconds to find, build and measure a schedule."""
_ROUNDS: Final = 4
"""Average number of rounds of a kernel."""
_ROUND: Final = (16, 64)
"""Minimum and maximum number of trials of a round."""
_SHORT_ROUND: Final = 4
"""Minimum number of trials of a round in a search of seconds, which a round must not exceed by far."""
_SLOW_TRIAL_SECONDS: Final = 0.5
"""Seconds of a trial of kernels that are slow to compile, such as transformed convolutions."""
_GENERATION: Final = 2
"""Programs of a generation for each trial of a round, so that the search takes as long as measuring."""
_SECONDS_EACH: Final = 2.0
"""Seconds of search of a kernel, on average, of as many kernels as the time allows."""
PROFILE_SHARE: Final = 0.5
"""Share of the time for measuring default schedules before the search begins."""
_PREPARED: Final = 4
"""Number of kernels that are built side by side before they are measured."""
LEAST_SHARE: Final = 0.01
"""Share of the time of all kernels that a kernel must be able to gain to be searched by default."""
LEAST_WORK: Final = 1e6
"""Least work of a kernel that is worth measuring by default: it takes about 20 us on a core."""
TOO_SMALL: Final = "it computes and moves too little to matter"
"""Reason why a kernel with little work is not searched."""
_PATIENCE: Final = 48
"""Number of trials without a faster schedule after which nothing more is expected of a kernel."""
NO_TIME: Final = "the time is spent on kernels that can gain more"
"""Reason why a kernel that can gain is not searched."""
_MANY: Final = 10**9
"""Number of trials where only the time is limited."""


@dataclass(frozen=True, eq=False)
class ScheduleSearch:
    """Settings of a search.

    Attributes:
        measurer: Measurer of schedules.
        history: Stored measurements, results and search times of this machine.
        peak: Peak floating-point operations per second of the machine; None if it is not known.
        seconds: Total seconds of the search, earlier searches of these kernels included.
        seconds_each: Seconds for each kernel that is chosen by what it can gain.
        trials: Maximum number of measured schedules of all kernels, stored ones included; None for no limit.
        seed: Random seed of the search.
        options: Options of the kernels' policies; None for options that fit the time.
        roofline: Function that returns the roofline of the machine, to leave out kernels that cannot gain
            much; None to search all.
        least_share: Least share of the time of all kernels that a searched kernel must be able to gain.
        least_work: Least work of a kernel that is measured if there is a roofline (`KernelSearch.work`).
        seconds_in_program: Seconds of a call of kernels with their default schedules within the program, by
            key. Those kernels are chosen without measuring their default schedules alone.
        samples: File with the samples of the cost model, also of other models; None for none.
        prepare: Function that builds schedules of several kernels side by side before they are measured.
        on_measured: Callbacks that are called with each round's measurements, finalists included.
        on_confirmed: Callbacks that are called with the finalists' measurements only.
        on_progress: Callback that is called after each round.
        should_stop: Function that returns true to end the search; measurements so far are stored.
    """

    measurer: ScheduleMeasurer
    history: ScheduleHistory
    peak: float | None
    seconds: float = math.inf
    seconds_each: float = math.inf
    trials: int | None = None
    seed: int = 0
    options: PolicyOptions | None = None
    roofline: Callable[[], Roofline] | None = None
    least_share: float = LEAST_SHARE
    least_work: float = 0.0
    seconds_in_program: Mapping[str, float] = field(default_factory=dict)
    samples: Path | None = None
    prepare: Callable[[Sequence[tuple[SearchTask, LoopState]]], object] = silent
    on_measured: Sequence[OnMeasured] = ()
    on_confirmed: Sequence[OnMeasured] = ()
    on_progress: Callable[[ScheduleProgress], object] = silent
    should_stop: Callable[[], bool] = never


@dataclass(frozen=True, slots=True)
class SearchedSchedules:
    """Result of the schedule search of a model's kernels.

    Attributes:
        log: Schedules that are faster than the default ones.
        rows: Rows of the kernels, by total time, longest first.
        trials: Number of schedules that were measured in this run.
        seconds: Duration of the search.
    """

    log: ScheduleLog
    rows: tuple[ScheduleRow, ...]
    trials: int
    seconds: float


def search_schedules(tasks: Sequence[ExtractedTask], search: ScheduleSearch) -> SearchedSchedules:
    """Search schedules of a model's kernels, and return those that are faster than the default ones.

    All kernels share one cost model, which begins with a draft. Each kernel's default schedule is measured
    first. With a roofline, kernels that run near it or have too small a share of the time are left out, by
    their times within the program where those are known; of the others as many as the time allows are
    searched until nothing more is expected of them, those that can gain most first. The kernels with the
    largest expected gain for the whole model get trials first (Ansor, section 6). At the end the best
    schedules of each kernel are measured again, interleaved with its default schedule.

    Args:
        tasks: Kernels of the model, at least one.
        search: Settings of the search.

    Raises:
        UsageError: There is no kernel.
        IntarsiaError: Measuring is impossible, or a result cannot be kept.
    """
    if not tasks:
        raise UsageError("the program has no native kernels", help="schedules are of native kernels")
    spent = search.history.spent(tasks)
    learned, draft = _models(tasks[0], search.seed)
    model = ScheduleModel.open(learned, search.samples)
    meter = WallMeter()
    control = RunControl(max(0.0, search.seconds - spent), meter=meter, should_stop=search.should_stop)
    kernels = _kernels(tasks, search, control, meter, model.model, draft)
    run = _Run(search, control, model, kernels)
    run.restore()
    if control.seconds:
        with suppress(StoppedError):  # what was measured before is kept
            run.choose()
            run.search_all()
            run.confirm_all()
        model.save()
        search.history.keep_spent(tasks, max(spent + control.spent, run.used_up))
    return run.result()


@dataclass(eq=False)
class _Run:
    """One search of all kernels."""

    search: ScheduleSearch
    control: RunControl
    model: ScheduleModel
    kernels: Sequence[KernelSearch]
    kept: dict[str, KeptSchedule] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    reported: int = 0
    chosen: list[KernelSearch] = field(init=False)

    def __post_init__(self) -> None:
        self.chosen = list(self.kernels)

    def restore(self) -> None:
        """Load the stored measurements and results of the kernels."""
        history = self.search.history
        for kernel in self.kernels:
            kept, records = history.find(kernel.extracted), history.records(kernel.extracted)
            if kept is not None:
                self.kept[kernel.extracted.key] = kept
            is_searched = self.control.seconds > 0
            is_new = kernel.extracted.task.workload_key not in self.model.learned
            kernel.preload(records, teach=is_searched and is_new)
        if self.search.trials is not None:
            self.control.trials = max(0, self.search.trials - sum(kernel.trials for kernel in self.kernels))

    def choose(self) -> None:
        """Choose the kernels to search by what they can gain, by their times with default schedules."""
        if self.search.roofline is None:
            return
        small = [kernel for kernel in self.kernels if kernel.work < self.search.least_work]
        self.reasons |= {kernel.extracted.key: TOO_SMALL for kernel in small}
        large = [kernel for kernel in self.kernels if kernel not in small]
        roofline = self.search.roofline() if large else None
        unknown = [kernel for kernel in large if not kernel.has_begun]
        self._measure_defaults([kernel for kernel in unknown if not math.isfinite(kernel.seconds_in_program)])
        outlooks = {kernel: kernel.outlook(roofline) for kernel in large if roofline is not None}
        total = sum(outlook.seconds for outlook in outlooks.values() if math.isfinite(outlook.seconds))
        for kernel, outlook in outlooks.items():
            self.reasons[kernel.extracted.key] = outlook.reason_to_skip(total, self.search.least_share)
        chosen = [kernel for kernel in large if not self.reasons[kernel.extracted.key]]
        ordered = sorted(chosen, key=lambda kernel: -outlooks[kernel].gain)
        most = min(len(ordered), self._most_kernels)
        self.chosen = ordered[:most]
        self.reasons |= {kernel.extracted.key: NO_TIME for kernel in ordered[most:]}
        limit = self.search.seconds_each * len(self.chosen) if self.chosen else 0.0
        self.control.seconds = min(self.control.seconds, self.control.spent + limit)

    @property
    def _most_kernels(self) -> int:
        """Maximum number of kernels that the time left suffices for."""
        left = SEARCH_SHARE * (self.control.seconds - self.control.spent)
        return max(1, int(left / _SECONDS_EACH)) if math.isfinite(left) else _MANY

    def _measure_defaults(self, kernels: Sequence[KernelSearch]) -> None:
        """Measure default schedules, the most work first, until their share of the time is used up."""
        limit = self.control.spent + PROFILE_SHARE * (self.control.seconds - self.control.spent)
        for first in range(0, len(kernels), _PREPARED):
            if first and self.control.spent >= limit:
                return
            group = kernels[first : first + _PREPARED]
            self.search.prepare([(each.extracted.task, each.extracted.default_state) for each in group])
            for kernel in group:
                kernel.measure_default()

    def search_all(self) -> None:
        """Measure schedules until time or trials are spent, or nothing new is found or expected."""
        if not self.chosen:
            return
        scheduled = [
            ScheduledTask(
                kernel, kernel.extracted.name, kernel.extracted.weight, max(0, kernel.extracted.flop_count)
            )
            for kernel in self.chosen
        ]
        count, seconds = len(scheduled), self.control.seconds
        options = SchedulerOptions(trials_per_round=_round_size(seconds, count))
        if self.search.roofline is not None:
            left = SEARCH_SHARE * (seconds - self.control.spent)
            size = _ROUND[0] if math.isinf(left) else int(left / (_SLOW_TRIAL_SECONDS * count))
            size = min(max(size, _SHORT_ROUND), _ROUND[0])
            options = replace(options, trials_per_round=size, per_task_early_stopping=_PATIENCE)
        chance = Random(self.search.seed)  # noqa: S311  # choices among equals
        scheduler = TaskScheduler(scheduled, options, rng=chance, on_round=[self._report])
        for number, kernel in enumerate(self.chosen):
            scheduler.restore(number, kernel.costs)
        whole, self.control.seconds = seconds, seconds * SEARCH_SHARE
        scheduler.tune(_MANY if math.isinf(self.control.trials) else max(count, int(self.control.trials)))
        self.control.seconds = whole

    def confirm_all(self) -> None:
        """Measure the best schedules again, interleaved with the default ones, the largest gains first."""
        has_raced = False
        for kernel in sorted(self.chosen, key=lambda search: -search.expected_gain):
            before = self.kept.get(kernel.extracted.key)
            if before is not None and before.trials == kernel.trials:
                continue
            if self.search.should_stop() or (has_raced and not self.control.seconds_left):
                return
            has_raced = True
            kept = kernel.confirm_finalists()
            if kept is not None:
                self.search.history.keep(kernel.extracted, kept)
                self.kept[kernel.extracted.key] = kept

    @property
    def used_up(self) -> float:
        """Seconds that a search counts for at least: all of them if the time has ended it."""
        is_limited = self.search.trials is not None and self.control.used >= self.control.trials
        has_ended = not is_limited and not self.search.should_stop() and math.isfinite(self.search.seconds)
        return self.search.seconds if has_ended else 0.0

    def result(self) -> SearchedSchedules:
        """Return the results of this search and of earlier ones."""
        rows = [
            kernel.progress_row(
                self.search.peak,
                self.kept.get(kernel.extracted.key),
                self.reasons.get(kernel.extracted.key, ""),
            )
            for kernel in self.kernels
        ]
        log = ScheduleLog({key: kept.history for key, kept in self.kept.items() if kept.history})
        return SearchedSchedules(
            log, tuple(sorted(rows, key=_total_time)), self.control.used, self.control.spent
        )

    def _report(self, table: SchedulerTable) -> None:
        used, fraction = self.control.used, self.control.fraction
        if used > self.reported:
            self.reported = used
            row = self.chosen[table.tuned].progress_row(self.search.peak)
            self.search.on_progress(ScheduleProgress(row, used, table.objective, fraction))


def _models(task: ExtractedTask, seed: int) -> tuple[LearnedModel, CostModel]:
    """Return the model that learns, and the one that prunes candidates before, for the machine of a task."""
    hardware = task.task.hardware
    if hardware.is_gpu:
        facts = facts_here()
        return usual_gpu_model(facts, seed), StaticGpuModel(facts)
    machine = Machine.of_isa(task.isa, hardware.num_cores)
    return usual_model(machine, seed), DraftModel(machine)


def _kernels(
    tasks: Sequence[ExtractedTask],
    search: ScheduleSearch,
    control: RunControl,
    meter: WallMeter,
    model: CostModel,
    draft: CostModel,
) -> list[KernelSearch]:
    """Return the searches of the kernels, the most work first: those are measured first."""
    size = _ROUND[0] if search.roofline is not None else _round_size(control.seconds, len(tasks))
    quick = PolicyOptions(evolutionary_search_population=_GENERATION * size, sample_init_min_population=size)
    ordered = sorted(tasks, key=lambda task: -task.weight * max(task.flop_count, task.bytes_moved))
    return [
        KernelSearch(
            task,
            model,
            draft,
            search.measurer,
            control,
            meter,
            search.seed,
            search.options or quick,
            search.on_measured,
            search.on_confirmed,
            search.history.hints(task),
            search.seconds_in_program.get(task.key, math.inf),
        )
        for task in ordered
    ]


def _round_size(seconds: float, kernels: int) -> int:
    """Return the trials of a round: fewer where there is little time for each kernel."""
    if math.isinf(seconds):
        return _ROUND[1]
    return min(max(int(seconds / (_TRIAL_SECONDS * _ROUNDS * kernels)), _ROUND[0]), _ROUND[1])


def _total_time(row: ScheduleRow) -> float:
    """Return a sort key that puts kernels with the most time in a run of the model first."""
    return -row.weight * (row.default_seconds or row.seconds or 0.0)
