"""Passes that decide by measuring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, PassContext
from intarsia.tune.candidates import consider_eval_passes, evaluate, extend_trace
from intarsia.tune.cost_model import CostModel, query_cost_model
from intarsia.tune.heuristic_pass import FeedbackPass
from intarsia.tune.instruction import Instruction
from intarsia.tune.strategy import Exhaustive, Point, SearchLimits, Strategy, Trials
from intarsia.tune.strategy.trials import NothingTriedError
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext

UNCHANGED: Final = "the program stays as it is"


@dataclass(frozen=True)
class TuningPass(FeedbackPass):
    """A pass that generates candidates, evaluates them, and selects the best (seed relax_pass_infra).

    A tuning pass is a frozen dataclass; most define only the instructions to decide on:

        @register_pass
        @dataclass(frozen=True)
        class TuneCombineParallelConv2D(TuningPass):
            def instructions(self, trace, ctx):
                choices = {"On": Choice("CombineParallelConv2D"), "Off": Choice()}
                return [Instruction("TuneCombineParallelConv2D", choices)]

    A pass with another loop overrides `tune` instead, with `generate_candidates`, `evaluate` and
    `select_best_candidate`.

    Attributes:
        eval_passes: Passes that each candidate goes through before its evaluation. A tuning pass there
            decides for each candidate: candidates multiply, where those of passes in a row add up.
        strategy: Search strategy over the combinations of decisions.
        limits: Limits of the search.
        expected_gain: Share of the program's time that first trials are expected to save, 0 to 1, by which
            `TuneInTurns` decides whether they are worth their time; None if they are made in any case.
    """

    eval_passes: tuple[Pass, ...] = ()
    strategy: Strategy = field(default_factory=Exhaustive, kw_only=True)
    limits: SearchLimits = field(default_factory=SearchLimits, kw_only=True)
    expected_gain: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eval_passes", tuple(self.eval_passes))

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The program after the best decisions; the program itself if no candidate works.

        Raises:
            UsageError: The context has no evaluator.
        """
        tuning = TuningContext.require(ctx, self.info.name)
        return tuning.record_decisions(mod, lambda begun: self._tune_in_node(begun, tuning))

    def _tune_in_node(self, begun: Trace, ctx: TuningContext) -> Trace:
        """Tune in a new node of the tuning tree, and mark the best trace there, or why there is none."""
        inside = ctx.for_candidates(self.info.name, begun)
        best = self.tune(begun.reopened(), inside)
        if best.has_failed:
            inside.node.remark = f"no candidate works ({best.fate or 'no reason given'}): {UNCHANGED}"
            best = begun.copy()
        inside.node.best = best
        return best

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """Search the best extension of a trace."""
        given = self.instructions(trace, ctx)
        expected = self.cost_model()

        def estimate(point: Point) -> float:
            assert expected is not None
            candidate = extend_trace(given, point, trace, ctx)
            return inf if candidate is None else query_cost_model(expected, candidate)

        return search_decisions(
            given,
            trace,
            ctx,
            self.eval_passes,
            self.strategy,
            self.limits,
            None if expected is None else estimate,
        )

    def cost_model(self) -> CostModel | None:
        """Return the model that orders combinations of decisions before any is measured; None for none.

        With few trials it decides what is measured: the first decisions of all, then what it expects to be
        cheapest.
        """
        return None

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:  # noqa: ARG002  # of subclasses
        """Return the decisions to make on the program at the end of a trace.

        Raises:
            UsageError: The pass defines neither `instructions` nor `tune`.
        """
        raise UsageError(
            f"pass {self.info.name} has nothing to decide", help="define `instructions` or `tune`"
        )


def search_decisions(
    instructions: Sequence[Instruction],
    trace: Trace,
    ctx: TuningContext,
    eval_passes: Sequence[Pass],
    strategy: Strategy,
    limits: SearchLimits,
    estimate: Callable[[Point], float] | None,
) -> Trace:
    """Search the best decisions with a strategy, and extend a trace by them.

    Combinations in which a choice is not open are not measured, and are never the best. If no combination is
    open, or the limits leave no room for a first trial, the trace is not extended.

    Args:
        instructions: Instructions to decide on, in order.
        trace: Trace that candidates extend.
        ctx: Context of the passes.
        eval_passes: Passes that each candidate goes through before its evaluation.
        strategy: Search strategy over the combinations.
        limits: Limits of the search.
        estimate: Function that returns the expected cost of a combination; None for none.

    Raises:
        UsageError: There is nothing to decide.
    """
    evaluated: dict[Point, Trace] = {}

    def costs(points: Sequence[Point]) -> list[float]:
        begun = {point: extend_trace(instructions, point, trace, ctx) for point in points}
        candidates = {point: candidate for point, candidate in begun.items() if candidate is not None}
        after_passes = list(candidates.values())
        if eval_passes:
            after_passes = consider_eval_passes(after_passes, ctx, eval_passes)
        evaluate(after_passes, ctx)
        evaluated.update(zip(candidates, after_passes, strict=True))
        return [evaluated[point].cost if point in evaluated else inf for point in points]

    choices = [instruction.decisions for instruction in instructions]
    trials = Trials(choices, costs, limits, estimate=estimate, should_stop=lambda: ctx.control.is_over)
    if trials.is_over:
        return trace.copy()
    try:
        best = strategy.search(trials)
    except NothingTriedError:  # stopped since `is_over` was checked
        return trace.copy()
    if best not in evaluated:
        names = ", ".join(instruction.name for instruction in instructions)
        ctx.node.remark = f"no combination of {names} is open: {UNCHANGED}"
        return trace.copy()
    return evaluated[best]
