"""A target and the rule that proposes sub-graphs for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.partition_rule import PartitionRule
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.ir import Function
from intarsia.target import Target


def _accept(_: Function) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """What a toolchain can be offered (seed collage_rfc, PartitionSpec), compared by name and target.

    Attributes:
        name: Of the toolchain, such as "onnxruntime"; "host" for what is left in place.
        target: What candidates are compiled for.
        rule: Proposes candidates.
        validate: Given a candidate's function, why the toolchain cannot take it, for people; "" if it can.
    """

    name: str
    target: Target
    rule: PartitionRule = field(compare=False)
    validate: Callable[[Function], str] = field(default=_accept, compare=False)

    @property
    def toolchain(self) -> str:
        """Name of who runs candidates; that of the spec for a target without toolchain."""
        return self.target.toolchain or self.name

    def candidates(self, graph: DataflowGraph) -> list[CandidatePartition]:
        """What the rule proposes."""
        return self.rule.all_candidates(graph, self)
