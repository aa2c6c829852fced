"""The best combination of decisions that a strategy finds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from intarsia.support.errors import UsageError
from intarsia.transform import Pass
from intarsia.tune.candidates import consider_eval_passes, decided, evaluate
from intarsia.tune.instruction import Instruction
from intarsia.tune.strategy import Point, SearchLimits, Strategy, Trials
from intarsia.tune.strategy.trials import NothingTriedError
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext


def best_decisions(
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
        begun = {point: decided(instructions, point, trace, ctx) for point in points}
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
