"""A common budget for the tuning passes of a sequence."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

from intarsia.ir import IRModule
from intarsia.support.callbacks import silent
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
"""Factor on a pass's expected gain for each slice without a gain; a heuristic, not measured."""
_UNPROVEN = 0.25
"""Expected gain of a pass that never gained, as a share of the gain per second of all; a heuristic."""


@dataclass(slots=True)
class PassShare:
    """A tuning pass's share of the budget, and its gain.

    Attributes:
        name: Name of the pass.
        trials: Maximum number of points that the pass may try.
        slices: Number of slices so far.
        seconds: Seconds spent in slices.
        measured: Number of candidates that were new to this run.
        gain: Share of the cost that all slices together saved, by single measurements.
        rate: Gain per second of the last slice with a gain.
        fruitless: Number of slices without a gain since then.
        is_done: Whether more trials would find nothing new.
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
        """Return the expected gain per second; infinite before the first slice.

        Args:
            overall: Gain per second of all passes together.
        """
        if not self.slices:
            return inf
        return (self.rate or _UNPROVEN * overall) * _FORGOTTEN**self.fruitless

    def __str__(self) -> str:
        """Return a line of text; a gain is that of single measurements, which noise may have made."""
        spent = f"{self.slices} slices, {self.measured} measured, {self.seconds:.1f} s"
        gain = (
            f"{100 * self.gain:.1f} % less time by single measurements, unproven" if self.gain else "no gain"
        )
        return f"{self.name}: {spent}, {gain}{', done' if self.is_done else ''}"


@dataclass(frozen=True)
class TuneInTurns(FeedbackPass, name="TuneInTurns"):
    """Runs passes in order, and divides trials and time among the tuning ones by expected gain per second.

    Each tuning pass first gets a slice of trials. Then the pass with the highest expected gain per second
    gets another slice. That expectation is the rate of its last slice with a gain, halved for each slice
    without one since. Each slice runs the whole row of passes again with the new limits; an evaluator with a
    memory does not measure earlier candidates again (the seed relax_pass_infra leaves open how to spend
    tuning time). With sufficient limits the result equals that of a `Sequential`.

    Attributes:
        passes: Passes in order; passes that are no tuning passes just run.
        limits: Limits on all passes together: measured candidates, seconds, stop flag.
        slice_trials: Number of points that a slice lets a pass try.
        on_report: Called with the shares at the end.
        clock: Function that returns seconds.
    """

    passes: tuple[Pass, ...] = ()
    limits: SearchLimits = field(default_factory=SearchLimits)
    slice_trials: int = 8
    on_report: Callable[[Sequence[PassShare]], object] = field(default=silent, repr=False)
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
            number: PassShare(item.info.name)
            for number, item in enumerate(self.passes)
            if isinstance(item, TuningPass)
        }
        start, measured = self.clock(), ctx.counts.distinct
        best = begun.copy()
        evaluate([best], ctx)
        # Passes get no time limit of their own, only this stop flag: see `_run`.
        limits = replace(self.limits, seconds=inf, should_stop=lambda: self._is_late(start))
        while not self._is_over(self.clock() - start, ctx.counts.distinct - measured):
            unfinished = [share for share in shares.values() if not share.is_done]
            if not unfinished:
                break
            spent = sum(share.seconds for share in shares.values())
            overall = sum(share.gain for share in shares.values()) / spent if spent else 0.0
            share = max(unfinished, key=lambda share: share.expected(overall))
            candidate = self._run_slice(share, shares, begun, best, ctx, limits)
            best = min(best, candidate, key=lambda trace: trace.cost)
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
        """Run the passes with more trials for one of them, and record its time and gain."""
        start, measured = self.clock(), ctx.counts.distinct
        share.trials += self.slice_trials
        share.slices += 1
        candidate = self._run(shares, begun, ctx, limits)
        seconds, new = self.clock() - start, ctx.counts.distinct - measured
        before, after = best.cost, candidate.cost
        gain = max(0.0, 1 - after / before) if isfinite(before) and before > 0 else float(isfinite(after))
        share.seconds += seconds
        share.measured += new
        share.gain = 1 - (1 - share.gain) * (
            1 - gain
        )  # gains multiply: each is a share of the cost before it
        share.rate = gain / max(seconds, 1e-9) if gain else share.rate
        share.fruitless = 0 if gain else share.fruitless + 1
        share.is_done = not new and not gain
        return candidate

    def _run(
        self, shares: dict[int, PassShare], begun: Trace, ctx: TuningContext, limits: SearchLimits
    ) -> Trace:
        """Run the passes in a row, each with its limits; tuning passes without trials yet are left out.

        Only this pass's clock limits the time: so an earlier part of a row repeats with the same result.
        """
        row = [
            replace(item, limits=replace(limits, trials=shares[number].trials))
            if isinstance(item, TuningPass)
            else item
            for number, item in enumerate(self.passes)
            if number not in shares or shares[number].trials
        ]
        inner = ctx.recording(begun.copy(), TuningNode("row"))
        Sequential(row, name="row")(begun.out_mod, inner)
        assert isinstance(inner.trace, TraceRecorder)
        best = inner.trace.tuned
        ctx.node.take_over(inner.node)
        evaluate([best], inner)
        return best

    def _is_over(self, seconds: float, measured: int) -> bool:
        return seconds >= self.limits.seconds or measured >= self.limits.trials or self.limits.should_stop()

    def _is_late(self, start: float) -> bool:
        limits = self.limits
        return (limits.seconds < inf and self.clock() - start >= limits.seconds) or limits.should_stop()
