"""Which candidates a search begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.rules.must_be_lowered import must_be_lowered


def largest(candidates: Sequence[CandidatePartition]) -> list[CandidatePartition]:
    """Those with the most nodes: one of each spec that can run all that any can."""
    most = max((len(work_in(each)) for each in candidates), default=0)
    return [each for each in candidates if len(work_in(each)) == most]


def single_operators(
    candidates: Sequence[CandidatePartition], shares: Mapping[int, float]
) -> list[CandidatePartition]:
    """Those of one call, the calls with the largest share of the time first."""
    found = [each for each in candidates if sum(map(must_be_lowered, each.sub_graph.exprs)) == 1]
    return sorted(found, key=lambda each: -max(shares.get(index, 0.0) for index in each.sub_graph.inside))


def work_in(candidate: CandidatePartition) -> list[int]:
    """The nodes of a candidate but for those that are everywhere."""
    graph = candidate.sub_graph.graph
    return [index for index in candidate.sub_graph.inside if index not in graph.everywhere]
