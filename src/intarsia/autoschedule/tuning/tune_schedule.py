"""The schedules of native kernels as a decision of a tuning pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from intarsia.autoschedule.tuning.search_seconds import SHARE, search_seconds, search_trials, seconds_each
from intarsia.ir import IRModule, structural_digest
from intarsia.op.infer import infer_types
from intarsia.support.errors import CompileError, ModelError, UsageError
from intarsia.target import Target
from intarsia.toolchain.native.caches import schedule_folder
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.this_host import this_host
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import EvaluatorOfKernels
from intarsia.tune.instruction import Instruction
from intarsia.tune.target_options import marked_functions, set_target_options
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

if TYPE_CHECKING:
    from intarsia.autoschedule.extraction import ExtractedTask
    from intarsia.measure.workers import Workers
    from intarsia.tune.measuring_evaluator import MeasuringEvaluator
    from intarsia.tune.run_control import RunControl

INSTRUCTION: Final = "schedules"
DEFAULT: Final = "default schedules"
"""Name of the decision for native's default schedules; it comes first, and wins ties."""


@register_pass
@dataclass(frozen=True)
class TuneSchedule(TuningPass, opt_level=0):
    """Decides between the default schedules of native's kernels and the best searched ones.

    The kernels are those of the functions that are partitioned for native; of a program without partitions,
    those of the whole program on native. Without kernels, nothing is decided. Each
    search continues earlier ones on this machine, if the context's evaluator has a database;
    without one it starts from scratch (docs/schedule_search.md). The program with the best schedules, as a
    schedule record, is then a candidate beside the unchanged program.

    By default only kernels are searched that can gain: those that are far from the roofline of this machine,
    and have a share of the time. The rows of the others say why they are not. Where a run leaves too little
    time for a search, stored schedules are tried. Functions that have a schedule log keep it.

    Kernels for a GPU are searched in the same way where there is one, and timed by its events; all of them,
    since nothing bounds their times. Without a GPU they are searched by their static cost, which is no time;
    the program with them is a candidate like any other.

    Attributes:
        target: Native target for the whole of a program without partitions; if empty,
            the evaluator's target, if that is native.
        seconds: Total seconds of schedule search of these kernels on this machine, earlier runs included; 0
            for no search: then stored schedules are tried.
        trials: Maximum number of measured schedules, earlier runs included; None for no limit.
        seed: Random seed of the search.
        least_share: Least share of the time of all kernels that a searched kernel must be able to gain; 0 to
            search all kernels.
        share: Largest share of the time of a run that is left, of which a program that is measured in no time
            gets less; 1 for all of it. Below 1 each kernel gets a few seconds only.

    Raises:
        UsageError: The target is not native's, or a limit leaves no time or trials.
    """

    target: str = ""
    seconds: float = 60.0
    trials: int | None = None
    seed: int = 0
    least_share: float = 0.01
    share: float = SHARE

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.target and Target(self.target).toolchain != Native.name:
            raise UsageError(
                f'target "{self.target}" is not native\'s, and schedules are of native kernels',
                help="write cpu -toolchain=native, with options if there are any",
            )
        if self.seconds < 0 or (self.trials is not None and self.trials < 1):
            raise UsageError(f"a search of {self.trials} trials in {self.seconds} s measures nothing")
        if not 0 <= self.least_share < 1:
            raise UsageError(f"least_share is {self.least_share}; expected a share from 0 to below 1")
        if not 0 < self.share <= 1:
            raise UsageError(f"share is {self.share}; expected a share above 0, and 1 at most")

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:
        """Return the one decision; it has one choice where no schedule is faster than the default.

        Raises:
            MissingToolchainError: Schedules must be searched, but native is not usable here.
            IntarsiaError: Measuring is impossible, or a result cannot be stored.
        """
        mod = infer_types(trace.out_mod)
        given = [marked.target for marked in marked_functions(mod)]
        is_partitioned, has_log = bool(given), any(target.option("schedules") for target in given)
        whole = None if is_partitioned else self._whole_target(ctx)
        default = Choice("PartitionWhole", {"target": str(whole)}) if whole and self.target else Choice()
        digest = ""
        if (is_partitioned or whole) and not has_log:
            # A pass that is run again on the same program, with another slice of trials, finds the same log.
            settings = self.seconds, self.trials, self.seed, self.least_share
            key = ("schedule log", str(whole), settings)
            unchanged = trace.copy()
            unchanged.add(Instruction(INSTRUCTION, {DEFAULT: default}), DEFAULT, ctx)
            digest = ctx.memo.get_or_make(
                trace.out_mod, key, lambda: self._find_log(mod, whole, unchanged, ctx)
            )
        if not digest:
            return [Instruction(INSTRUCTION, {DEFAULT: default})]
        if whole is None:
            options = {"toolchain": Native.name, "options": {"schedules": digest}}
            scheduled = Choice(set_target_options, options)
        else:
            scheduled = Choice("PartitionWhole", {"target": str(whole.with_options(schedules=digest))})
        return [Instruction(INSTRUCTION, {DEFAULT: default, f"schedule log {digest}": scheduled})]

    def _whole_target(self, ctx: TuningContext) -> Target | None:
        """Return the target of a program without partitions, if it is native's."""
        from intarsia.tune.whole_evaluator import whole_target

        target = Target(self.target) if self.target else whole_target(ctx.evaluator)
        return target if target is not None and target.toolchain == Native.name else None

    def _find_log(self, mod: IRModule, whole: Target | None, unchanged: Trace, ctx: TuningContext) -> str:
        """Search schedules; return the digest of the log of the best ones, "" if the defaults are best.

        Args:
            mod: The program.
            whole: Target of the whole program, or None if functions are assigned to toolchains.
            unchanged: Candidate with default schedules.
            ctx: Context of the pass.
        """
        from intarsia.autoschedule.tuning.gpu_schedules import has_gpu, is_for_gpu
        from intarsia.autoschedule.tuning.schedule_history import ScheduleHistory, SearchCharge
        from intarsia.autoschedule.tuning.schedule_log import ScheduleLogs
        from intarsia.autoschedule.tuning.schedule_records import ScheduleRows, ScheduleSearchStart
        from intarsia.tune.whole_evaluator import measuring_evaluator

        control = ctx.control.part(seconds=self.limits.seconds)

        def should_stop() -> bool:
            return control.is_over

        on_gpu = is_for_gpu(mod, whole)
        if on_gpu and not has_gpu():
            return self._find_gpu_log(mod, whole, control)
        judge = measuring_evaluator(ctx.evaluator)
        history = ScheduleHistory(None if judge is None else judge.measurer.database, this_host())
        most = min(self.seconds, self.limits.seconds)
        seconds = 0.0 if should_stop() else search_seconds(most, self.share, ctx.control)
        trials = search_trials(self.trials, ctx.control) if seconds else self.trials
        seconds = 0.0 if trials == 0 else seconds
        is_known = bool(seconds) or not history.is_empty
        is_wanted = is_known and not should_stop()
        tasks = _kernels(mod, whole, control.on_note, on_gpu=on_gpu) if is_wanted else ()
        if not tasks:
            return ""
        if seconds:
            control.report(ScheduleSearchStart())
        # On a GPU each kernel is timed alone from the beginning: none is left out by its time in the program.
        seconds_in_program = _time_in_program(tasks, unchanged, ctx) if seconds and not on_gpu else {}
        logs = ScheduleLogs(
            this_host(),
            history.database,
            seconds,
            trials,
            self.seed,
            self.least_share,
            control.report,
            control.on_note,
            should_stop,
            _lent_workers(judge),
            seconds_each(self.share, ctx.control),
        )
        searched = logs.make(tasks, seconds_in_program)
        if judge is not None:
            # The search measures too: its time and trials count against the budget like those of candidates.
            question = structural_digest(mod), whole, seconds, trials, self.seed, self.least_share
            charge = history.find_charge(question)
            if charge is not None:
                judge.measurer.count_work(charge.trials, charge.seconds)
            else:
                charge = SearchCharge(judge.measurer.count_work(searched.trials), searched.trials)
                if not ctx.control.should_stop():
                    history.keep_charge(question, tasks, charge)
        ctx.node.notes.append(ScheduleRows(searched.rows))
        return searched.log.digest if len(searched.log) else ""

    def _find_gpu_log(self, mod: IRModule, whole: Target | None, control: RunControl) -> str:
        """Search schedules of GPU kernels by their static cost; return the digest of their log.

        Nothing is measured here: the program with these schedules is a candidate.
        """
        from intarsia.autoschedule.tuning.gpu_schedules import gpu_schedule_log

        control = control.part(
            seconds=search_seconds(min(self.seconds, self.limits.seconds), self.share, control)
        )
        try:
            log = gpu_schedule_log(mod, whole, seed=self.seed, should_stop=lambda: control.is_over)
        except (CompileError, ModelError) as error:
            control.on_note(f"no schedules are searched: {error.problem}")
            return ""
        if not len(log):
            return ""
        log.save(schedule_folder())
        return log.digest


def _lent_workers(judge: MeasuringEvaluator | None) -> Workers | None:
    """Return the workers that measure the run's programs: they measure its schedules too."""
    from intarsia.measure.testbed import LendingTestbed

    testbed = None if judge is None else judge.measurer.testbed
    return testbed.lend_workers() if isinstance(testbed, LendingTestbed) else None


def _time_in_program(
    tasks: Sequence[ExtractedTask], unchanged: Trace, ctx: TuningContext
) -> dict[str, float]:
    """Return the seconds of a call of kernels within a program by key; none if it cannot be timed now."""
    calls: Counter[str] = Counter()
    for task in tasks:
        calls[task.key] += task.weight
    evaluator = ctx.evaluator
    timed = (
        evaluator.time_kernels([unchanged], list(calls))
        if isinstance(evaluator, EvaluatorOfKernels)
        else None
    )
    if timed is None:
        return {}
    measured = zip(calls.items(), timed[0], strict=True)
    return {key: seconds / count for (key, count), seconds in measured if seconds > 0}


def _kernels(
    mod: IRModule, whole: Target | None, on_note: Callable[[str], object], *, on_gpu: bool
) -> tuple[ExtractedTask, ...]:
    """Return native's kernels of a program; none if it cannot compile it: its candidates report the error."""
    from intarsia.autoschedule.extraction import extract_tasks
    from intarsia.autoschedule.extraction.extract_gpu_tasks import extract_gpu_tasks
    from intarsia.autoschedule.task.facts_here import facts_here

    try:
        if on_gpu:
            return extract_gpu_tasks(mod, whole, facts_here())
        return extract_tasks(mod, whole)
    except (CompileError, ModelError) as error:
        on_note(f"no schedules are searched: {error.problem}")
        return ()
