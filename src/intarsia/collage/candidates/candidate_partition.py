"""What is proposed for a target, and by which rule (seed collage_rfc).

A spec names a target and its rule, the rule finds candidates for the spec, and each candidate names its spec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from intarsia.collage.candidates.cost import Cost
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph.sub_graph import SubGraph
from intarsia.ir import Function
from intarsia.target import Target


@dataclass(frozen=True, slots=True)
class CandidatePartition:
    """A sub-graph and the spec whose toolchain would run it (seed collage_rfc, CandidatePartition).

    Two are equal if the spec and the sub-graph are, its functions' attributes included: then they are the
    same program for the same toolchain, whichever rule found them, and whether the cost is known yet.

    Attributes:
        sub_graph: Sub-graph that would be run.
        spec: For which target.
        rule_name: The rules that made it, for people: "conv_relu+add".
        cost: Estimated cost; UNKNOWN until it is estimated.
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


class PartitionRule(Protocol):
    """Finds candidates in a graph. Rules are values: frozen dataclasses, combined by nesting."""

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """Every candidate of a graph for a spec's target, in an order that is always the same.

        Candidates may overlap, and need not be valid: `OnlyValidPartitionRule` sorts those out. A base rule
        makes sub-graphs of `graph.unit(index)`; wrapping is `sub_graph.with_attrs`, joining
        `disjoint_union`.
        """


def _accept(_: Function) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """What a toolchain can be offered (seed collage_rfc, PartitionSpec), compared by name and target.

    Attributes:
        name: Name of the toolchain, such as "onnxruntime"; "host" for what is left in place.
        target: Target that candidates are compiled for.
        rule: Proposes candidates.
        validate: Given a candidate's function, why the toolchain cannot take it, for people; "" if it can.
    """

    name: str
    target: Target
    rule: PartitionRule = field(compare=False)
    validate: Callable[[Function], str] = field(default=_accept, compare=False)

    @property
    def toolchain(self) -> str:
        """Name of the toolchain that runs candidates; that of the spec for a target without toolchain."""
        return self.target.toolchain or self.name

    def candidates(self, graph: DataflowGraph) -> list[CandidatePartition]:
        """What the rule proposes."""
        return self.rule.all_candidates(graph, self)
