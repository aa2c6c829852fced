"""What needs no toolchain."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.must_be_lowered import must_be_lowered, open_nodes
from intarsia.collage.sub_graph import SubGraph


@dataclass(frozen=True, slots=True)
class HostPartitionRule:
    """One candidate, of no cost, for each node that is no call to be lowered (seed collage_rfc).

    Variables, tuples, fields, Let, If, function literals, calls of global functions and of functions that are
    compiled already stay where they are; the branches of an If are covered node by node. Constants and
    other nodes that are everywhere need no cover. Such candidates are never wrapped. Linear.
    """

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The nodes in order, each with its cost."""
        return [
            CandidatePartition(SubGraph.of(graph, [index]), spec, cost=Cost.ZERO)
            for index in open_nodes(graph)
            if not must_be_lowered(graph[index].expr)
        ]
