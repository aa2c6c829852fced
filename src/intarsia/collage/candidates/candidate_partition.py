"""A sub-graph proposed for a target."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from intarsia.collage.candidates.cost import Cost
from intarsia.collage.sub_graph.sub_graph import SubGraph

if TYPE_CHECKING:
    from intarsia.collage.candidates.partition_spec import PartitionSpec


@dataclass(frozen=True, slots=True)
class CandidatePartition:
    """A sub-graph and the spec whose toolchain would run it (seed collage_rfc, CandidatePartition).

    Two are equal if the spec and the sub-graph are, its functions' attributes included: then they are the
    same program for the same toolchain, whichever rule found them, and whether the cost is known yet.

    Attributes:
        sub_graph: What would be run.
        spec: For which target.
        rule_name: The rules that made it, for people: "conv_relu+add".
        cost: What it costs; UNKNOWN until it is estimated.
    """

    sub_graph: SubGraph
    spec: PartitionSpec
    rule_name: str = field(default="", compare=False)
    cost: Cost = field(default=Cost.UNKNOWN, compare=False)

    @property
    def name(self) -> str:
        """Spec and rule, or label: "onnxruntime.conv_relu"."""
        return f"{self.spec.name}.{self.rule_name or self.sub_graph.label}"

    @property
    def sort_key(self) -> tuple[tuple[int, ...], str, str, str]:
        """Orders candidates by their nodes, then by name; always the same."""
        nested = ";".join(map(str, self.sub_graph.nested))
        return tuple(self.sub_graph.inside), self.spec.name, self.rule_name, nested

    def with_sub_graph(self, sub_graph: SubGraph, rule_name: str | None = None) -> CandidatePartition:
        """The spec with another sub-graph, whose cost is not known."""
        name = self.rule_name if rule_name is None else rule_name
        return CandidatePartition(sub_graph, self.spec, name)

    def with_cost(self, cost: Cost) -> CandidatePartition:
        """The candidate with its cost."""
        return replace(self, cost=cost)

    def __str__(self) -> str:
        return f"{self.name} {self.sub_graph.inside} {self.cost}"
