"""Whatever a pattern matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.must_be_lowered import open_nodes
from intarsia.collage.sub_graph import SubGraph
from intarsia.ir.pattern import ExprPattern, Match, Users, match


def _always(_: Match) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class DFPatternPartitionRule:
    """One candidate for each node that a pattern matches (seed collage_rfc).

    Inside is what the pattern covers: no constants, and nothing that a wildcard stands for. Candidates may
    overlap, and may be used from outside in their middle. Linear in the graph, times what a match costs.

    Attributes:
        name: Name of the candidates; "" for the label of their operators.
        pattern: Pattern to look for.
        check: Decides on each match what the pattern cannot say.
    """

    name: str
    pattern: ExprPattern
    check: Callable[[Match], bool] = field(default=_always)

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """A candidate for each match, in order of the nodes that the pattern as a whole stands for."""
        users = Users.below(graph.function)
        matches = (match(self.pattern, graph[index].expr, users) for index in open_nodes(graph))
        return [
            CandidatePartition(_covered(graph, one), spec, self.name)
            for one in matches
            if one is not None and one.covered and self.check(one)
        ]


def _covered(graph: DataflowGraph, found: Match) -> SubGraph:
    inside = graph.set_of()
    for expr in found.covered:
        index = graph.node(expr).index
        if index not in graph.everywhere:
            inside |= graph.unit(index)
    return SubGraph.of(graph, inside)
