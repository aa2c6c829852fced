"""The schedules of native kernels as a decision of a tuning pass."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from intarsia.driver.schedule_records import ScheduleRequest
from intarsia.ir import IRModule
from intarsia.op.infer import infer_types
from intarsia.support.callbacks import silent
from intarsia.support.errors import CompileError, ModelError, UsageError
from intarsia.target import Target
from intarsia.toolchain.native.toolchain import Native
from intarsia.toolchain.this_host import this_host
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.target_options import marked_functions, set_target_options
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

if TYPE_CHECKING:
    from intarsia.autoschedule.extraction import ExtractedTask

DEFAULT: Final = "default schedules"
"""The decision for the schedules that native chooses by rule; it stands first, and wins ties."""


@register_pass
@dataclass(frozen=True)
class TuneSchedule(TuningPass, opt_level=0):
    """Decides whether native's kernels have their default schedules, or the best that a search has found.

    The kernels are those of the functions that the program gives to native; of a program that gives nothing
    to anybody, those that it has when native gets the whole. Where there are none, nothing is decided. Each
    search goes on where earlier ones on this machine have ended, if the context's evaluator has a database;
    without one it begins anew (docs/schedule_search.md). Then the program with the schedules found, as a
    book, is a candidate beside the program as it is.

    Attributes:
        target: A target of native that gets the whole of a program that gives nothing to anybody; if empty,
            native gets it where the evaluator's target is native.
        seconds: Time of all searches for these kernels on this machine, also of those before. 0 for no
            search: then what has won before is tried.
        trials: Schedules that are measured, those of before counted; None for as many as there is time for.
        seed: Of the search.

    Raises:
        UsageError: The target is not native's, or there is no time or trial to search with.
    """

    target: str = ""
    seconds: float = 60.0
    trials: int | None = None
    seed: int = 0

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

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:
        """The one decision; with one choice where no schedule is faster than the default one.

        Raises:
            MissingToolchainError: Schedules are to be searched, and native is not usable here.
            IntarsiaError: Measuring is impossible, or a result cannot be kept.
        """
        mod = infer_types(trace.out_mod)
        is_given = any(True for _ in marked_functions(mod))
        whole = None if is_given else self._whole(ctx)
        default = Choice("PartitionWhole", {"target": str(whole)}) if whole and self.target else Choice()
        digest = self._book(mod, whole, ctx) if is_given or whole else ""
        if not digest:
            return [Instruction("schedules", {DEFAULT: default})]
        if whole is None:
            options = {"toolchain": Native.name, "options": {"schedules": digest}}
            booked = Choice(set_target_options, options)
        else:
            booked = Choice("PartitionWhole", {"target": str(whole.with_options(schedules=digest))})
        return [Instruction("schedules", {DEFAULT: default, f"book {digest}": booked})]

    def _whole(self, ctx: TuningContext) -> Target | None:
        """Who gets a program that gives nothing to anybody, if that is native."""
        from intarsia.tune.whole_evaluator import whole_target

        target = Target(self.target) if self.target else whole_target(ctx.evaluator)
        return target if target is not None and target.toolchain == Native.name else None

    def _book(self, mod: IRModule, whole: Target | None, ctx: TuningContext) -> str:
        """Digest of the book of native's best schedules; "" if none is better than the default one."""
        from intarsia.driver.booked_targets import BookedRun
        from intarsia.tune.whole_evaluator import measuring_evaluator

        limits, begun = self.limits, time.monotonic()

        def should_stop() -> bool:
            return limits.should_stop() or time.monotonic() - begun >= limits.seconds

        tasks = () if should_stop() else _kernels(mod, whole)
        if not tasks:
            return ""
        judge = measuring_evaluator(ctx.evaluator)
        database = None if judge is None else judge.measurer.database
        run = BookedRun(mod, this_host(), database, self.seed, silent, silent, should_stop)
        request = ScheduleRequest(self.seconds, self.trials) if self.seconds else None
        book, _ = run.book(tasks, request)
        return book.digest if len(book) else ""


def _kernels(mod: IRModule, whole: Target | None) -> tuple[ExtractedTask, ...]:
    """Native's kernels of a program; none if it cannot compile it, as its candidates then tell."""
    from intarsia.autoschedule.extraction import extract_tasks

    try:
        return extract_tasks(mod, whole)
    except (CompileError, ModelError):
        return ()
