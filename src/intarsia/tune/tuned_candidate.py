"""Programs after decisions as candidates for the whole model: plain data, that any process can carry out."""

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
"""What was decided, in words ("ConvertLayout: NHWC"), and the choice."""


def decisions_of(trace: Trace) -> tuple[Decision, ...]:
    """The decisions of a trace, without those that leave the program as it is."""
    made = ((step, step.instruction.choice(step.decision)) for step in trace.steps)
    return tuple(
        (f"{step.instruction.name}: {step.decision}", choice)
        for step, choice in made
        if choice.transform != IDENTITY
    )


def tuned_candidate(decisions: tuple[Decision, ...], base: Candidate) -> Candidate:
    """A candidate that decides on the program first; the other candidate itself if there is no decision.

    Args:
        decisions: In order.
        base: What is done with the program after them.
    """
    if not decisions:
        return base
    made: list[PlainData] = [_to_json(each) for each in decisions]
    return Candidate(KIND, {"decisions": made, "then": {"kind": base.kind, "trace": base.trace}})


def decisions_and_base(candidate: Candidate) -> tuple[tuple[Decision, ...], Candidate]:
    """What a candidate decides first, and what it does with the program then.

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
    """The program after what a candidate decides first.

    Raises:
        UsageError: A transformation is not known here, or does not fit.
    """
    for _, choice in decisions_and_base(candidate)[0]:
        mod = choice.apply(mod)
    return mod


def decision_from_json(data: Mapping[str, Any]) -> Decision:
    """The decision that `decisions_json` wrote.

    Raises:
        UsageError: It is no such data.
    """
    try:
        return str(data["decision"]), Choice.from_json(data["choice"])
    except (KeyError, TypeError) as error:
        raise UsageError(f"a decision is malformed: {error!r}") from None


def decisions_json(decisions: tuple[Decision, ...]) -> list[dict[str, Any]]:
    """Decisions as plain data."""
    return [cast("dict[str, Any]", _to_json(each)) for each in decisions]


def instantiate_tuned(mod: IRModule, target: Target, trace: PlainData) -> IRModule:
    """The program that such a candidate stands for."""
    candidate = Candidate(KIND, trace)
    return instantiate(apply_decisions(mod, candidate), target, decisions_and_base(candidate)[1])


def _to_json(decision: Decision) -> PlainData:
    text, choice = decision
    return {"decision": text, "choice": choice.to_json()}
