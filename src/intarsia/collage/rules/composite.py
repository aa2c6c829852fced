"""Candidates as Composite functions."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import SubGraph
from intarsia.ir import Call, Op


@dataclass(frozen=True, slots=True)
class CompositePartitionRule:
    """Wraps each candidate of a rule as what a toolchain runs as one operator (seed collage_rfc).

    The function has the attributes that `passes.MergeComposite` writes.

    Attributes:
        name: The value of the attribute Composite: "acme.conv_relu".
        sub: The rule.
    """

    name: str
    sub: PartitionRule

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The rule's candidates, wrapped."""
        return [
            one.with_sub_graph(one.sub_graph.with_attrs(self._attrs(one.sub_graph)), self.name)
            for one in self.sub.all_candidates(graph, spec)
        ]

    def _attrs(self, sub_graph: SubGraph) -> dict[str, str]:
        calls = (expr.op for expr in sub_graph.exprs if isinstance(expr, Call))
        names = "_".join(op.name for op in calls if isinstance(op, Op))
        return {"Composite": self.name, "PartitionedFromPattern": names}
