"""Each call by itself, whatever it is."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.must_be_lowered import open_calls
from intarsia.collage.sub_graph import SubGraph


@dataclass(frozen=True, slots=True)
class EachCallPartitionRule:
    """One candidate for each call that must be lowered: the rule of the reference (DESIGN section 7).

    With it no search fails because no toolchain takes an operator; the seed's rules leave opaque operators
    uncovered. Loop, Scan and SequenceMap take their body along. Linear.
    """

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The calls in order."""
        return [
            CandidatePartition(SubGraph.of(graph, graph.unit(index)), spec) for index in open_calls(graph)
        ]
