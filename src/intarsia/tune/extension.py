"""Traces extended by decisions and passes; what raises makes a failed candidate, not an ended run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from intarsia.ir import IRModule
from intarsia.support.errors import DatabaseError, IntarsiaError, OutputError, StoppedError, UsageError
from intarsia.transform import Pass, Sequential
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TraceRecorder, TuningContext

_OF_THE_RUN: Final = (StoppedError, DatabaseError, OutputError)
"""Errors that end a run, whatever raised them: no candidate is at fault."""


def extended(
    trace: Trace, instruction: Instruction, decision: str, ctx: TuningContext | None = None
) -> Trace | None:
    """Return a trace extended by a decision; None if the choice is not open.

    If the constraint or the transformation raises, the new trace has failed, with the error as the reason,
    and its program is the one before the decision.

    Args:
        trace: Trace to extend, which stays as it is; a failed one is returned.
        instruction: Instruction to decide on.
        decision: Key of the choice.
        ctx: Context of the passes, which remembers programs after choices; default: the current one.

    Raises:
        UsageError: The instruction has no such choice, or the choice names what is not registered.
    """
    if trace.has_failed:
        return trace
    choice, mod, longer = instruction.choice(decision), trace.out_mod, trace.copy()
    choice.check_names()
    if ctx is None:
        after = _applied(choice, mod, None)
    else:
        after = ctx.memo.get_or_make(mod, ("choice", choice.text), partial(_applied, choice, mod, ctx))
    if after is None:
        return None
    longer.note(instruction, decision, mod if isinstance(after, str) else after)
    if isinstance(after, str):
        longer.fail(after)
    return longer


def _applied(choice: Choice, mod: IRModule, ctx: TuningContext | None) -> IRModule | str | None:
    """Return the program after a choice, the reason of a failure, or None for a choice that is not open."""
    try:
        return choice.apply(mod, ctx) if choice.is_open(mod) else None
    except _OF_THE_RUN:
        raise
    except Exception as error:  # a transformation may be foreign code, and raise anything
        return failure_reason(error)


def after_passes(passes: Sequence[Pass], trace: Trace, ctx: TuningContext) -> Trace:
    """Return a trace extended by passes: a heuristic pass adds a decision, a tuning pass its best decisions.

    If a pass raises, the new trace has failed, with the error as the reason.

    Args:
        passes: The passes, in order.
        trace: Trace to extend, which stays as it is.
        ctx: Context of the passes, with the node of the tuning tree for their candidates.

    Raises:
        UsageError: A pass is used wrongly.
    """
    if trace.has_failed or not passes:
        return trace.copy()
    inner = ctx.recording(trace.copy(), ctx.node)
    recorder = inner.trace
    assert isinstance(recorder, TraceRecorder)
    try:
        Sequential(passes, name="eval_passes")(trace.out_mod, inner)
    except (UsageError, *_OF_THE_RUN):
        raise
    except Exception as error:  # as above
        failed = recorder.tuned.copy()  # the trace itself may be a candidate of a pass before
        failed.fail(failure_reason(error))
        return failed
    return recorder.tuned


def failure_reason(error: Exception) -> str:
    """Return an error as the reason of a failure, on one line."""
    problem = error.problem if isinstance(error, IntarsiaError) else f"{type(error).__name__}: {error}"
    return " ".join(problem.split())
