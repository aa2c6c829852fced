"""One budget for the tuning passes of a sequence."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, PassContext, Sequential
from intarsia.tune.candidates import evaluate
from intarsia.tune.heuristic_pass import FeedbackPass
from intarsia.tune.strategy import SearchLimits
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TraceRecorder, TuningContext
from intarsia.tune.tuning_pass import TuningPass
from intarsia.tune.tuning_tree import TuningNode

_FORGOTTEN = 0.5
"""What is left of a pass's expected gain after a slice that brought none."""
_UNPROVEN = 0.25
"""What a pass that never gained is expected to gain, as a share of what all together gain in a second."""


@dataclass(slots=True)
class PassShare:
    """What a tuning pass got of the budget, and what it made of it.

    Attributes:
        name: Of the pass.
        trials: Points that it may try at most.
        slices: How often it got more.
        seconds: Time spent on that.
        measured: Candidates that were new to this run.
        gain: By which share of the cost before its slices the whole became faster.
        rate: What its last slice with a gain gained in a second.
        fruitless: Slices without a gain since then.
        is_done: Whether more trials would bring nothing new.
    """

    name: str
    trials: int = 0
    slices: int = 0
    seconds: float = 0.0
    measured: int = 0
    gain: float = 0.0
    rate: float = 0.0
    fruitless: int = 0
    is_done: bool = False

    def expected(self, overall: float) -> float:
        """Expected gain in a second; infinite before its first slice.

        Args:
            overall: What all passes together have gained in a second.
        """
        if not self.slices:
            return inf
        return (self.rate or _UNPROVEN * overall) * _FORGOTTEN**self.fruitless

    def __str__(self) -> str:
        """A line for people."""
        spent = f"{self.slices} slices, {self.measured} measured, {self.seconds:.1f} s"
        return f"{self.name}: {spent}, {100 * self.gain:.1f} % faster{', done' if self.is_done else ''}"


@dataclass(frozen=True)
class TuneInTurns(FeedbackPass, name="TuneInTurns"):
    """Runs passes in a row, and divides trials and time among the tuning ones by expected gain per second.

    Each tuning pass first gets a slice of trials. Then the one with the best expected gain per second gets
    another: what its last slice gained in a second, less and less after slices that gained nothing. The row
    is then run again with the new limits; what was evaluated before is known, and costs nothing where the
    evaluator remembers it (the seed relax_pass_infra leaves open how to use tuning time wisely). Passes in a
    row whose limits suffice end as in a `Sequential`.

    Attributes:
        passes: In order; those that are no tuning passes just run.
        limits: Of all passes together: measured candidates, seconds, a wish to stop.
        slice_trials: Points that a slice lets a pass try.
        on_report: Told the shares at the end.
        clock: Tells seconds.
    """

    passes: tuple[Pass, ...] = ()
    limits: SearchLimits = field(default_factory=SearchLimits)
    slice_trials: int = 8
    on_report: Callable[[Sequence[PassShare]], object] = field(default=lambda _: None, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "passes", tuple(self.passes))
        if self.slice_trials < 1 or not any(isinstance(item, TuningPass) for item in self.passes):
            raise UsageError("TuneInTurns needs a tuning pass, and slices of at least one trial")

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The program after the best decisions.

        Raises:
            UsageError: The context has no evaluator.
        """
        tuning = TuningContext.require(ctx, self.info.name)
        return tuning.record_decisions(mod, lambda begun: self._tune(begun, tuning))

    def _tune(self, begun: Trace, ctx: TuningContext) -> Trace:
        shares = {
            place: PassShare(item.info.name)
            for place, item in enumerate(self.passes)
            if isinstance(item, TuningPass)
        }
        start, measured = self.clock(), ctx.counts.distinct
        best = begun.copy()
        evaluate([best], ctx)
        limits = replace(self.limits, seconds=inf, should_stop=lambda: self._is_late(start))
        while not self._is_over(self.clock() - start, ctx.counts.distinct - measured):
            open_ones = [share for share in shares.values() if not share.is_done]
            if not open_ones:
                break
            spent = sum(each.seconds for each in shares.values())
            overall = sum(each.gain for each in shares.values()) / spent if spent else 0.0
            share = max(open_ones, key=lambda each: each.expected(overall))
            found = self._run_slice(share, shares, begun, best, ctx, limits)
            best = min(best, found, key=lambda each: inf if each.perf is None else each.perf)
        self.on_report(tuple(shares.values()))
        return best

    def _run_slice(
        self,
        share: PassShare,
        shares: dict[int, PassShare],
        begun: Trace,
        best: Trace,
        ctx: TuningContext,
        limits: SearchLimits,
    ) -> Trace:
        """Run the row with more trials for a pass; note what it took and brought."""
        start, measured = self.clock(), ctx.counts.distinct
        share.trials += self.slice_trials
        share.slices += 1
        found = self._run(shares, begun, ctx, limits)
        seconds, new = self.clock() - start, ctx.counts.distinct - measured
        before, after = best.perf or 0.0, inf if found.perf is None else found.perf
        gain = max(0.0, 1 - after / before) if isfinite(before) and before > 0 else float(isfinite(after))
        share.seconds += seconds
        share.measured += new
        share.gain = 1 - (1 - share.gain) * (1 - gain)
        share.rate = gain / max(seconds, 1e-9) if gain else share.rate
        share.fruitless = 0 if gain else share.fruitless + 1
        share.is_done = not new and not gain
        return found

    def _run(
        self, shares: dict[int, PassShare], begun: Trace, ctx: TuningContext, limits: SearchLimits
    ) -> Trace:
        """The row, with the limits of each pass; those without any yet are left out.

        Time is told by this pass' clock only, so that a row ends where it ended when it was run before.
        """
        row = [
            replace(item, limits=replace(limits, trials=shares[place].trials))
            if isinstance(item, TuningPass)
            else item
            for place, item in enumerate(self.passes)
            if place not in shares or shares[place].trials
        ]
        inner = ctx.recording(begun.copy(), TuningNode("row"))
        Sequential(row, name="row")(begun.out_mod, inner)
        assert isinstance(inner.trace, TraceRecorder)
        found = inner.trace.tuned
        ctx.node.take_over(inner.node)
        evaluate([found], inner)
        return found

    def _is_over(self, seconds: float, measured: int) -> bool:
        return seconds >= self.limits.seconds or measured >= self.limits.trials or self.limits.should_stop()

    def _is_late(self, start: float) -> bool:
        limits = self.limits
        return (limits.seconds < inf and self.clock() - start >= limits.seconds) or limits.should_stop()
