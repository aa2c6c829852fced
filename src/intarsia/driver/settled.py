"""Candidates whose last decisions say who runs what: the same as a placement, or as the whole on a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from intarsia.collage.placement.placement import Partition, Placement
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE
from intarsia.measure.measure_input import MeasureInput
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.tune.tuned_candidate import Decision, decisions_and_base, tuned_candidate

_WHOLE, _PARTS, _OPTIONS = "PartitionWhole", "partitioned", "set_target_options"


def settled(item: MeasureInput) -> MeasureInput:
    """A candidate with its placement behind its decisions, where these end with one; else as it is.

    So what tuning passes have placed is told, kept and measured as what Collage has placed is.
    """
    decisions, base = decisions_and_base(item.candidate)
    places = [at for at, (_, choice) in enumerate(decisions) if choice.transform in (_WHOLE, _PARTS)]
    if base.kind != AS_IT_IS.kind or len(places) != 1:
        return item
    before, (_, placing), after = decisions[: places[0]], decisions[places[0]], decisions[places[0] + 1 :]
    options = _options(after)
    if options is None:
        return item
    if placing.transform == _WHOLE:
        target = _with(Target.parse(str(placing.args["target"])), options)
        return MeasureInput(item.workload, target, tuned_candidate(before, WHOLE))
    partitions = tuple(map(Partition.from_json, placing.args["partitions"]))
    placed = Placement(
        tuple(replace(each, target=str(_with(Target.parse(each.target), options))) for each in partitions)
    )
    return MeasureInput(item.workload, REFERENCE_TARGET, tuned_candidate(before, placed.candidate))


def _options(decisions: Sequence[Decision]) -> list[tuple[str, dict[str, Any]]] | None:
    """Options for all functions of toolchains, in order; None if there are other decisions."""
    found = []
    for _, choice in decisions:
        if choice.transform != _OPTIONS or choice.args.get("functions"):
            return None
        found.append((str(choice.args["toolchain"]), dict(choice.args["options"])))
    return found


def _with(target: Target, options: Sequence[tuple[str, dict[str, Any]]]) -> Target:
    for toolchain, values in options:
        if target.toolchain == toolchain:
            target = target.with_options(**values)
    return target
