"""The steps of a feedback loop: candidates, what they cost, the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from intarsia.support.errors import UsageError
from intarsia.transform import Pass
from intarsia.tune.extension import after_passes, extended
from intarsia.tune.instruction import Instruction
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_tree import decisions_text


def generate_candidates(
    instructions: Instruction | Sequence[Instruction],
    trace: Trace,
    ctx: TuningContext,
    eval_passes: Sequence[Pass] = (),
) -> list[Trace]:
    """Return the extensions of a trace by all combinations of decisions (seed relax_pass_infra).

    A combination in which a choice is not open where it would be applied is left out. One in which a
    transformation raises is a failed candidate.

    Args:
        instructions: Instructions to decide on, in order.
        trace: Trace that candidates extend.
        ctx: Context of the passes.
        eval_passes: Passes that each candidate goes through before its evaluation; a tuning pass among them
            makes decisions for each candidate, which is what makes tuning joint.
    """
    sequence = (instructions,) if isinstance(instructions, Instruction) else tuple(instructions)
    points = product(*(instruction.decisions for instruction in sequence))
    candidates = [
        candidate for point in points if (candidate := extend_trace(sequence, point, trace, ctx)) is not None
    ]
    return consider_eval_passes(candidates, ctx, eval_passes) if eval_passes else candidates


def extend_trace(
    instructions: Sequence[Instruction], decisions: Sequence[str], trace: Trace, ctx: TuningContext
) -> Trace | None:
    """Return a trace extended by decisions; None if a choice is not open where it would be applied.

    It has failed, with the reason, if a transformation raises.
    """
    candidate = trace.reopened()
    for instruction, decision in zip(instructions, decisions, strict=True):
        longer = extended(candidate, instruction, decision, ctx)
        if longer is None:
            return None
        candidate = longer
    return candidate


def consider_eval_passes(
    traces: Iterable[Trace], ctx: TuningContext, eval_passes: Sequence[Pass]
) -> list[Trace]:
    """Run passes on each trace: a heuristic pass adds a decision, a tuning pass its best decisions.

    A trace whose passes raise has failed, with the reason.
    """
    return [_run_eval_passes(trace, ctx, eval_passes) for trace in traces]


def _run_eval_passes(trace: Trace, ctx: TuningContext, eval_passes: Sequence[Pass]) -> Trace:
    node = ctx.node.add(decisions_text(trace, ctx.begun))
    node.trace = after_passes(eval_passes, trace, ctx.recording(trace, node))
    return node.trace


def evaluate(candidates: Sequence[Trace], ctx: TuningContext) -> None:
    """Evaluate candidates without a cost, and store the cost in them."""
    ctx.node.note(candidates, ctx.begun)
    waiting = [candidate for candidate in candidates if candidate.perf is None]
    if not waiting:
        return
    ctx.counts.proposed += len(waiting)
    for candidate, evaluation in zip(waiting, ctx.evaluator.evaluate(waiting), strict=True):
        candidate.perf, candidate.fate = evaluation.perf, evaluation.fate
        ctx.counts.measured += evaluation.is_new
        ctx.counts.distinct += evaluation.is_new if evaluation.is_first is None else evaluation.is_first


def select_best_candidate(candidates: Sequence[Trace]) -> Trace:
    """Return the cheapest candidate, of equal ones the first; a failed one only if all have failed.

    Raises:
        UsageError: There is none, or one has not been evaluated.
    """
    if not candidates:
        raise UsageError("there is no candidate to choose from", help="an instruction needs an open choice")
    if any(candidate.perf is None for candidate in candidates):
        raise UsageError("a candidate has not been evaluated", help="evaluate(candidates, ctx) does that")
    return min(candidates, key=lambda candidate: candidate.cost)
