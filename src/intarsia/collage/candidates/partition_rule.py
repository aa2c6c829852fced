"""What proposes candidates (seed collage_rfc, PartitionRule)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from intarsia.collage.candidates.candidate_partition import CandidatePartition
    from intarsia.collage.candidates.partition_spec import PartitionSpec
    from intarsia.collage.graph.dataflow_graph import DataflowGraph


class PartitionRule(Protocol):
    """Finds candidates in a graph. Rules are values: frozen dataclasses, combined by nesting."""

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """Every candidate of a graph for a spec's target, in an order that is always the same.

        Candidates may overlap, and need not be valid: `OnlyValidPartitionRule` sorts those out. A base rule
        makes sub-graphs of `graph.unit(index)`; wrapping is `sub_graph.with_attrs`, joining
        `disjoint_union`.
        """
