"""Candidates that can become a function of an allowed shape."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import SubGraphConfig


@dataclass(frozen=True, slots=True)
class OnlyValidPartitionRule:
    """The valid candidates of a rule (seed collage_rfc).

    Attributes:
        sub: The rule.
        config: Limits of the shapes that are allowed.
    """

    sub: PartitionRule
    config: SubGraphConfig

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The rule's candidates without the invalid ones."""
        found = self.sub.all_candidates(graph, spec)
        return [one for one in found if one.sub_graph.is_valid(self.config)]
