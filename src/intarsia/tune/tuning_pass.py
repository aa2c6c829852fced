"""Passes that decide by measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, PassContext
from intarsia.tune.best_decisions import best_decisions
from intarsia.tune.heuristic_pass import FeedbackPass
from intarsia.tune.instruction import Instruction
from intarsia.tune.strategy import Exhaustive, SearchLimits, Strategy
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
        tuning = TuningContext.of(ctx, self.info.name)
        return tuning.continued(mod, lambda begun: self._noted(begun, tuning))

    def _noted(self, begun: Trace, ctx: TuningContext) -> Trace:
        """The best trace, with what was tried in the tree."""
        inside = ctx.within(self.info.name, begun)
        inside.node.best = self.tune(begun.copy(), inside)
        return inside.node.best

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """The best way to go on from a trace, of those that the strategy tries."""
        given = self.instructions(trace, ctx)
        return best_decisions(given, trace, ctx, self.eval_passes, self.strategy, self.limits)

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:  # noqa: ARG002  # of subclasses
        """What is to be decided about the program that a trace has led to.

        Raises:
            UsageError: The pass says neither this nor how it tunes.
        """
        raise UsageError(
            f"pass {self.info.name} has nothing to decide", help="define `instructions` or `tune`"
        )
