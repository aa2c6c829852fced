"""Calls that cannot be cut out by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.must_be_lowered import nodes_to_cover, open_calls
from intarsia.collage.sub_graph import SubGraph


@dataclass(frozen=True, slots=True)
class InPlacePartitionRule:
    """One candidate, of no cost, for each node of a call that no function can be made of.

    So are calls with values of unknown type, function values, and a body that two Loops share. They cannot
    be measured by itself; `build` runs it, in its place, with its default toolchain. Linear.
    """

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The nodes in order, each with its cost."""
        left = graph.set_of()
        for index in open_calls(graph):
            if SubGraph.of(graph, graph.unit(index)).structure_complaint is not None:
                left |= graph.unit(index)
        return [
            CandidatePartition(SubGraph.of(graph, [index]), spec, "in_place", Cost.ZERO)
            for index in left & nodes_to_cover(graph)
        ]
