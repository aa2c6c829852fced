"""A common budget for the tuning passes of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Final

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, PassContext, Sequential
from intarsia.tune.candidates import evaluate
from intarsia.tune.heuristic_pass import FeedbackPass
from intarsia.tune.run_control import RunControl
from intarsia.tune.strategy import SearchLimits
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TraceRecorder, TuningContext
from intarsia.tune.tuning_pass import TuningPass
from intarsia.tune.tuning_tree import TuningNode

_FORGOTTEN: Final = 0.5
"""Factor on a pass's expected gain for each slice without a gain; a heuristic, not measured."""

_FIRST_GAIN: Final = 0.01
"""Gain that is expected of a slice of a pass that never gained, before halving; a heuristic."""

_CLEAR_GAIN: Final = 0.02
"""Gain of a slice, by single measurements, that renews the patience of the run: less is noise."""

_WORTH: Final = 0.06
"""Gain that the whole budget must bring at a slice's expected gain per second: else the slice is not run."""


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
        first_gain: Expected gain of the first slice; infinite if it is run in any case.
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
    first_gain: float = inf

    @property
    def expects_turn(self) -> bool:
        """Whether the pass has no slice yet, and is to get one in any case."""
        return not self.slices and not isfinite(self.first_gain)

    def expected(self, slice_seconds: float) -> float:
        """Return the expected gain per second of the next slice.

        Args:
            slice_seconds: Expected seconds of the first slice; 0 if unknown.
        """
        if not self.slices:
            return self.first_gain / slice_seconds if slice_seconds else inf
        first = _FIRST_GAIN * self.slices / max(self.seconds, 1e-9)
        return (self.rate or first) * _FORGOTTEN**self.fruitless

    def __str__(self) -> str:
        """Return a line of text; a gain is that of single measurements, which noise may have made."""
        slices = "1 slice" if self.slices == 1 else f"{self.slices} slices"
        spent = f"{slices}, {self.measured} measured, {self.seconds:.1f} s"
        gain = (
            f"{100 * self.gain:.1f} % less time by single measurements, unproven" if self.gain else "no gain"
        )
        return f"{self.name}: {spent}, {gain}{', done' if self.is_done else ''}"


@dataclass(frozen=True)
class TuneInTurns(FeedbackPass, name="TuneInTurns"):
    """Runs passes in order, and divides trials and time among the tuning ones by expected gain per second.

    The pass with the highest expected gain per second gets the next slice of trials. At first that is the
    `expected_gain` of the pass over the seconds that so many candidates have taken so far; passes without
    one get their first slice in any case, before all others, with a patience of its own. Later it is the
    rate of its last slice with a gain, or a small one if it had none, halved for each slice without one
    since. The run ends when nothing is left to try, or when so little is expected that the whole budget
    would gain less than 6 % at that rate; with a control that `proves` only the former ends it. Each slice
    runs the whole row of passes again with the new limits; an evaluator with a memory does not measure
    earlier candidates again (the seed relax_pass_infra leaves open how to spend tuning time). With
    sufficient limits the result equals that of a `Sequential`.

    The shares of the passes are notes of the tuning tree; what is left out, and why, is recorded in the
    control of the context.

    Attributes:
        passes: Passes in order; passes that are no tuning passes just run.
        limits: Limits on all passes together: measured candidates and seconds.
        slice_trials: Number of points that a slice lets a pass try.
    """

    passes: tuple[Pass, ...] = ()
    limits: SearchLimits = field(default_factory=SearchLimits)
    slice_trials: int = 8

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
        part = tuning.control.part(seconds=self.limits.seconds)
        return tuning.record_decisions(mod, lambda begun: self._tune(begun, tuning.within(part)))

    def _tune(self, begun: Trace, ctx: TuningContext) -> Trace:
        shares = {
            number: PassShare(
                item.info.name, first_gain=inf if item.expected_gain is None else item.expected_gain
            )
            for number, item in enumerate(self.passes)
            if isinstance(item, TuningPass)
        }
        measured = ctx.counts.distinct
        best = begun.copy()
        evaluate([best], ctx)
        while ctx.counts.distinct - measured < self.limits.trials:
            if any(share.expects_turn for share in shares.values()):
                ctx.control.renew()  # however little the passes before it have gained
            if ctx.control.is_over:
                break
            share = _most_promising(list(shares.values()), ctx.control, self.slice_trials)
            if share is None:
                break
            candidate = self._run_slice(share, shares, begun, best, ctx)
            if candidate.cost < (1 - _CLEAR_GAIN) * best.cost:
                ctx.control.renew()
            best = min(best, candidate, key=lambda trace: trace.cost)
        ctx.node.notes += shares.values()
        late = dict.fromkeys(share.name for share in shares.values() if not share.slices)
        if late and ctx.control.is_over:
            turn = "its turn" if len(late) == 1 else "their turn"
            ctx.control.skip(", ".join(late), f"{ctx.control.ending} before {turn}")
        return best

    def _run_slice(
        self,
        share: PassShare,
        shares: dict[int, PassShare],
        begun: Trace,
        best: Trace,
        ctx: TuningContext,
    ) -> Trace:
        """Run the passes with more trials for one of them, and record its time and gain."""
        start, measured = ctx.control.spent, ctx.counts.distinct
        share.trials += self.slice_trials
        share.slices += 1
        candidate = self._run(shares, begun, ctx)
        seconds, new = ctx.control.spent - start, ctx.counts.distinct - measured
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

    def _run(self, shares: dict[int, PassShare], begun: Trace, ctx: TuningContext) -> Trace:
        """Run the passes in a row, each with its limits and share; tuning passes without trials are left out.

        Only the control limits the time: so an earlier part of a row repeats with the same result.
        """
        row = [
            replace(item, limits=replace(item.limits, trials=min(shares[number].trials, item.limits.trials)))
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


def _most_promising(shares: Sequence[PassShare], control: RunControl, trials: int) -> PassShare | None:
    """Return the share of which most is expected; None if nothing is left, or too little is expected.

    Args:
        shares: Shares of all passes.
        control: Budget of the passes.
        trials: Number of trials of a slice.
    """
    unfinished = [share for share in shares if not share.is_done]
    if not unfinished:
        return None
    seconds = trials * control.seconds_per_trial
    best = max(unfinished, key=lambda share: share.expected(seconds))
    total, expected = control.spent + control.budget_left, best.expected(seconds)
    if control.proves or not isfinite(total) or expected * total >= _WORTH:
        return best
    untried = ", ".join(dict.fromkeys(share.name for share in shares if not share.slices))
    rest = f"{100 * expected * control.budget_left:.1f} % more is expected of the rest"
    if untried:
        control.skip(untried, f"{rest}: --until-proven or a larger --budget tries them")
    if any(share.slices for share in unfinished):
        control.skip("further slices of tuning passes", f"after {control.spent:.1f} of {total:.1f} s, {rest}")
    return None
