"""Costs of candidates after the last estimate: what covers are compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.costs.shrinkage import MeasuredSeconds, shrunk
from intarsia.collage.search import INVALID


def final_costs(
    candidates: Sequence[CandidatePartition],
    estimates: Mapping[CandidatePartition, Estimate],
    *,
    shrink: bool,
) -> dict[int, float]:
    """Seconds of each candidate that is known, by its position; `INVALID` for those that cannot run.

    Args:
        candidates: Candidates of a problem; those of the host have their cost.
        estimates: Estimates of all other candidates that have one.
        shrink: Whether costs of the same nodes are shrunk by their uncertainty.
    """
    costs: dict[int, float] = {}
    groups: dict[int, dict[int, MeasuredSeconds]] = {}
    for piece, candidate in enumerate(candidates):
        estimate = estimates.get(candidate)
        cost = candidate.cost if estimate is None else estimate.cost
        if cost.is_unknown:
            continue
        costs[piece] = cost.seconds if cost.is_value else INVALID
        if estimate is not None and cost.is_value and cost.seconds > 0:
            group = groups.setdefault(candidate.sub_graph.inside.bits, {})
            group[piece] = MeasuredSeconds(cost.seconds, estimate.low, estimate.high)
    if shrink:
        for group_costs in shrunk(list(groups.values())):
            costs.update(group_costs)
    return costs
