"""Candidates with a placement among their decisions, in the form that baselines and Collage give theirs.

A placement can be written in two ways: as a decision of a trace ("PartitionWhole" on a target), or as the
target and the kind of a candidate. Measurements, plans and tables of both must be the same. So candidates of
traces are brought into the second form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE
from intarsia.measure.measure_input import Candidate, MeasureInput
from intarsia.support.registry import Registry
from intarsia.target import OptionValue, Target
from intarsia.tune.tuned_candidate import Decision, decisions_and_base, tuned_candidate

Retarget: TypeAlias = Callable[[Target], Target]
"""Function that sets options that were decided after a placement."""

Placing: TypeAlias = Callable[[Mapping[str, Any], Retarget], tuple[Target, Candidate]]
"""Function of a placing choice's arguments that returns the target and the candidate of the program."""

PLACINGS: Final[Registry[Placing]] = Registry("placing transformation")
"""Transformations that place a program, by name."""

_OPTIONS: Final = "set_target_options"


def with_placement(item: MeasureInput) -> MeasureInput:
    """Return a candidate with its placement after its decisions; itself if its decisions do not end with one.

    Args:
        item: Candidate by decisions.
    """
    decisions, base = decisions_and_base(item.candidate)
    at = [number for number, (_, choice) in enumerate(decisions) if str(choice.transform) in PLACINGS]
    if base.kind != AS_IT_IS.kind or len(at) != 1:
        return item
    before, (_, placing), after = decisions[: at[0]], decisions[at[0]], decisions[at[0] + 1 :]
    options = _options(after)
    if options is None:
        return item
    retarget = lambda target: _with_options(target, options)  # noqa: E731  # binds the options
    target, candidate = PLACINGS[str(placing.transform)](placing.args, retarget)
    return MeasureInput(item.workload, target, tuned_candidate(before, candidate))


def placement_alone(item: MeasureInput) -> MeasureInput:
    """Return a candidate that only places the program as another one does, without its other decisions.

    Args:
        item: Candidate by decisions, or with a placement.
    """
    decisions, base = decisions_and_base(item.candidate)
    placing = tuple(decision for decision in decisions if str(decision[1].transform) in PLACINGS)
    return with_placement(MeasureInput(item.workload, item.target, tuned_candidate(placing, base)))


def _options(decisions: Sequence[Decision]) -> list[tuple[str, dict[str, OptionValue | None]]] | None:
    """Return options for all functions of toolchains, in order; None if there are other decisions."""
    options = []
    for _, choice in decisions:
        if choice.transform != _OPTIONS or choice.args.get("functions"):
            return None
        options.append((str(choice.args["toolchain"]), dict(choice.args["options"])))
    return options


def _with_options(target: Target, options: Sequence[tuple[str, Mapping[str, OptionValue | None]]]) -> Target:
    for toolchain, values in options:
        if target.toolchain == toolchain:
            target = target.with_options(**values)
    return target


def _place_whole(args: Mapping[str, Any], retarget: Retarget) -> tuple[Target, Candidate]:
    return retarget(Target.parse(str(args["target"]))), WHOLE


PLACINGS.register("PartitionWhole", _place_whole)
