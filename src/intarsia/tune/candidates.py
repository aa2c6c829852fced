"""The steps of a feedback loop: candidates, what they cost, the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product

from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential
from intarsia.tune.instruction import Instruction
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TraceRecorder, TuningContext
from intarsia.tune.tuning_tree import decisions_text


def generate_candidates(
    instructions: Instruction | Sequence[Instruction],
    trace: Trace,
    ctx: TuningContext,
    eval_passes: Sequence[Pass] = (),
) -> list[Trace]:
    """All combinations of the decisions of instructions, behind a trace (seed relax_pass_infra).

    A combination in which a choice is not open where it would be applied is left out.

    Args:
        instructions: What is decided, in order.
        trace: Where candidates begin.
        ctx: What passes run under.
        eval_passes: What each candidate goes through before it is evaluated; a tuning pass among them makes
            its own decisions for each candidate, which is what makes tuning joint.
    """
    given = (instructions,) if isinstance(instructions, Instruction) else tuple(instructions)
    points = product(*(each.decisions for each in given))
    found = [one for point in points if (one := extend_trace(given, point, trace, ctx)) is not None]
    return consider_eval_passes(found, ctx, eval_passes) if eval_passes else found


def extend_trace(
    instructions: Sequence[Instruction], decisions: Sequence[str], trace: Trace, ctx: TuningContext
) -> Trace | None:
    """A trace that goes on with decisions; None if a choice is not open where it would be applied."""
    candidate = trace.copy()
    for instruction, decision in zip(instructions, decisions, strict=True):
        choice, mod = instruction.choice(decision), candidate.out_mod
        if not choice.is_open(mod):
            return None
        after = ctx.memo.get_or_make(mod, ("choice", choice.text), partial(choice.apply, mod, ctx))
        candidate.note(instruction, decision, after)
    return candidate


def consider_eval_passes(
    traces: Iterable[Trace], ctx: TuningContext, eval_passes: Sequence[Pass]
) -> list[Trace]:
    """Each trace after passes: heuristic ones add a decision, tuning ones their best decisions."""
    sequence = Sequential(eval_passes, name="eval_passes")
    return [_run_eval_passes(trace, ctx, sequence) for trace in traces]


def _run_eval_passes(trace: Trace, ctx: TuningContext, sequence: Sequential) -> Trace:
    node = ctx.node.add(decisions_text(trace, ctx.begun))
    inner = ctx.recording(trace.copy(), node)
    sequence(trace.out_mod, inner)
    recorder = inner.trace
    assert isinstance(recorder, TraceRecorder)
    node.trace = recorder.tuned
    return recorder.tuned


def evaluate(candidates: Sequence[Trace], ctx: TuningContext) -> None:
    """Find out what candidates cost, and note it in them; those that have a cost are left alone."""
    ctx.node.note(candidates, ctx.begun)
    waiting = [candidate for candidate in candidates if candidate.perf is None]
    if not waiting:
        return
    ctx.counts.proposed += len(waiting)
    for candidate, found in zip(waiting, ctx.evaluator.evaluate(waiting), strict=True):
        candidate.perf, candidate.fate = found.perf, found.fate
        ctx.counts.measured += found.is_new
        ctx.counts.distinct += found.is_new if found.is_first is None else found.is_first


def select_best_candidate(candidates: Sequence[Trace]) -> Trace:
    """The candidate that costs least; of equal ones the first.

    Raises:
        UsageError: There is none, or one has not been evaluated.
    """
    if not candidates:
        raise UsageError("there is no candidate to choose from", help="an instruction needs an open choice")
    if any(candidate.perf is None for candidate in candidates):
        raise UsageError("a candidate has not been evaluated", help="evaluate(candidates, ctx) does that")
    return min(candidates, key=lambda candidate: candidate.perf or 0.0)
