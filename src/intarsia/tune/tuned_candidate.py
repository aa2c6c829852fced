"""Whole-program candidates with decisions: plain data that any process can apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.tune.choice import Choice
from intarsia.tune.trace import Trace
from intarsia.tune.transformations import IDENTITY

KIND: Final = "tuned"
"""Kind of the candidates that begin with decisions on the program."""

Decision: TypeAlias = tuple[str, Choice]
"""The text of a decision ("ConvertLayout: NHWC") and its choice."""


def decisions_of(trace: Trace) -> tuple[Decision, ...]:
    """The decisions of a trace, without those that leave the program as it is."""
    choices = ((step, step.instruction.choice(step.decision)) for step in trace.steps)
    return tuple(
        (f"{step.instruction.name}: {step.decision}", choice)
        for step, choice in choices
        if choice.transform != IDENTITY
    )


def tuned_candidate(decisions: tuple[Decision, ...], base: Candidate) -> Candidate:
    """Return a candidate that applies decisions first; `base` itself without decisions.

    Args:
        decisions: Decisions in order.
        base: Candidate for the program after them.
    """
    if not decisions:
        return base
    plain: list[PlainData] = [_to_json(decision) for decision in decisions]
    return Candidate(KIND, {"decisions": plain, "then": {"kind": base.kind, "trace": base.trace}})


def decisions_and_base(candidate: Candidate) -> tuple[tuple[Decision, ...], Candidate]:
    """Return the decisions of a candidate, and the candidate for the program after them.

    Raises:
        UsageError: It is damaged, or of another version.
    """
    if candidate.kind != KIND:
        return (), candidate
    try:
        data = cast("Any", candidate.trace)
        decisions = tuple(map(decision_from_json, data["decisions"]))
        return decisions, Candidate(str(data["then"]["kind"]), data["then"]["trace"])
    except (KeyError, TypeError) as error:
        raise UsageError(f"a candidate with decisions is malformed: {error!r}") from None


def apply_decisions(mod: IRModule, candidate: Candidate) -> IRModule:
    """Apply the decisions of a candidate to a program.

    Raises:
        UsageError: A transformation is not registered in this process, or does not apply.
    """
    for _, choice in decisions_and_base(candidate)[0]:
        mod = choice.apply(mod)
    return mod


def decision_from_json(data: Mapping[str, Any]) -> Decision:
    """The decision that `decisions_json` wrote.

    Raises:
        UsageError: The data is malformed.
    """
    try:
        return str(data["decision"]), Choice.from_json(data["choice"])
    except (KeyError, TypeError) as error:
        raise UsageError(f"a decision is malformed: {error!r}") from None


def decisions_json(decisions: tuple[Decision, ...]) -> list[dict[str, Any]]:
    """Decisions as plain data."""
    return [cast("dict[str, Any]", _to_json(decision)) for decision in decisions]


def instantiate_tuned(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    """Return the program of a candidate of this kind."""
    candidate = Candidate(KIND, trace)
    return instantiate(apply_decisions(mod, candidate), target, decisions_and_base(candidate)[1])


def _to_json(decision: Decision) -> PlainData:
    text, choice = decision
    return {"decision": text, "choice": choice.to_json()}
