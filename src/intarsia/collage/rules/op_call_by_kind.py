"""Each call that fusion starts from."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.must_be_lowered import open_calls
from intarsia.collage.sub_graph import SubGraph
from intarsia.op import OpPatternKind


@dataclass(frozen=True, slots=True)
class OpCallByKindPartitionRule:
    """One candidate for each call of a fusable kind: OUT_ELEMWISE_FUSABLE or more fusable (seed collage_rfc).

    Opaque calls are left to `EachCallPartitionRule` of another spec. Linear.
    """

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The fusable calls in order."""
        return [
            CandidatePartition(SubGraph.of(graph, graph.unit(index)), spec)
            for index in open_calls(graph)
            if graph.kinds[index] <= OpPatternKind.OUT_ELEMWISE_FUSABLE
        ]
