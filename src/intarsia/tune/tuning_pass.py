"""Passes that decide by measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, PassContext
from intarsia.tune.candidates import consider_eval_passes, evaluate, extend_trace
from intarsia.tune.heuristic_pass import FeedbackPass
from intarsia.tune.instruction import Instruction
from intarsia.tune.strategy import Exhaustive, Point, SearchLimits, Strategy, Trials
from intarsia.tune.strategy.trials import NothingTriedError
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext


@dataclass(frozen=True)
class TuningPass(FeedbackPass):
    """A pass that makes candidates, finds out what they cost, and takes the best (seed relax_pass_infra).

    A tuning pass is a frozen dataclass; most say only what is to be decided:

        @register_pass
        @dataclass(frozen=True)
        class TuneCombineParallelConv2D(TuningPass):
            def instructions(self, trace, ctx):
                choices = {"On": Choice("CombineParallelConv2D"), "Off": Choice()}
                return [Instruction("TuneCombineParallelConv2D", choices)]

    One with a loop of its own writes `tune` instead, of `generate_candidates`, `evaluate` and
    `select_best_candidate`.

    Attributes:
        eval_passes: What each candidate goes through before it is evaluated. A tuning pass there decides anew
            for each candidate: candidates multiply, where those of passes in a row add up.
        strategy: Which combinations of the decisions are tried.
        limits: When that ends.
    """

    eval_passes: tuple[Pass, ...] = ()
    strategy: Strategy = field(default_factory=Exhaustive, kw_only=True)
    limits: SearchLimits = field(default_factory=SearchLimits, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eval_passes", tuple(self.eval_passes))

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The program after the best decisions.

        Raises:
            UsageError: The context has no evaluator.
        """
        tuning = TuningContext.require(ctx, self.info.name)
        return tuning.record_decisions(mod, lambda begun: self._tune_in_node(begun, tuning))

    def _tune_in_node(self, begun: Trace, ctx: TuningContext) -> Trace:
        """The best trace, with what was tried in the tree."""
        inside = ctx.for_candidates(self.info.name, begun)
        inside.node.best = self.tune(begun.copy(), inside)
        return inside.node.best

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """The best way to go on from a trace, of those that the strategy tries."""
        given = self.instructions(trace, ctx)
        return _search_decisions(given, trace, ctx, self.eval_passes, self.strategy, self.limits)

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:  # noqa: ARG002  # of subclasses
        """What is to be decided about the program that a trace has led to.

        Raises:
            UsageError: The pass says neither this nor how it tunes.
        """
        raise UsageError(
            f"pass {self.info.name} has nothing to decide", help="define `instructions` or `tune`"
        )


def _search_decisions(
    instructions: Sequence[Instruction],
    trace: Trace,
    ctx: TuningContext,
    eval_passes: Sequence[Pass],
    strategy: Strategy,
    limits: SearchLimits,
) -> Trace:
    """A trace that goes on with the best decisions that a strategy tries.

    Combinations in which a choice is not open cost nothing, and are never the best. If the limits leave no
    room for a first trial, nothing is decided.

    Args:
        instructions: What is decided, in order.
        trace: Where candidates begin.
        ctx: What passes run under.
        eval_passes: What each candidate goes through before it is evaluated.
        strategy: Which combinations are tried.
        limits: When that ends.

    Raises:
        UsageError: There is nothing to decide, or no combination is open.
    """
    found: dict[Point, Trace] = {}

    def costs(points: Sequence[Point]) -> list[float]:
        begun = {point: extend_trace(instructions, point, trace, ctx) for point in points}
        open_ones = {point: one for point, one in begun.items() if one is not None}
        ended = list(open_ones.values())
        if eval_passes:
            ended = consider_eval_passes(ended, ctx, eval_passes)
        evaluate(ended, ctx)
        found.update(zip(open_ones, ended, strict=True))
        return [found[point].perf or 0.0 if point in found else inf for point in points]

    trials = Trials([each.decisions for each in instructions], costs, limits)
    if trials.is_over:
        return trace.copy()
    try:
        best = strategy.search(trials)
    except NothingTriedError:  # the wish to stop has come since
        return trace.copy()
    if best not in found:
        raise UsageError(
            f"no combination of {', '.join(each.name for each in instructions)} is open",
            help="leave one choice without a constraint, such as Choice(), which changes nothing",
        )
    return found[best]
