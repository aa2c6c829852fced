"""The candidates of several rules."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph


@dataclass(frozen=True, slots=True)
class UnionPartitionRule:
    """All candidates of all rules; of equal ones the first (seed collage_rfc).

    Attributes:
        subs: The rules, the preferred first.
    """

    subs: tuple[PartitionRule, ...]

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The candidates rule by rule."""
        found = (one for sub in self.subs for one in sub.all_candidates(graph, spec))
        return list(dict.fromkeys(found))
