"""Candidates as functions that are compiled on their own."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.build.kernel_table import COMPILER, SYMBOL, TARGET
from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.ir import Attrs


@dataclass(frozen=True, slots=True)
class PrimitivePartitionRule:
    """Wraps each candidate of a rule in a function of its own (seed collage_rfc).

    All toolchains' candidates are wrapped, the reference's too: what was measured is what runs. The
    attributes are the same for all candidates of a spec, so that neighbours can become one function.

    Attributes:
        sub: The rule.
    """

    sub: PartitionRule

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The rule's candidates, wrapped."""
        attrs = primitive_attrs(spec)
        return [
            one.with_sub_graph(one.sub_graph.with_attrs(attrs))
            for one in self.sub.all_candidates(graph, spec)
        ]


def primitive_attrs(spec: PartitionSpec) -> Attrs:
    """The attributes that mark a function as a partition of a spec: Primitive, and its toolchain.

    A target without toolchain leaves that to `build`. The name is a hint, which `passes.PartitionGraph`
    replaces by one that is free.
    """
    attrs = Attrs({"Primitive": 1, SYMBOL: f"collage_{spec.name}"})
    if spec.target.toolchain is None:
        return attrs
    return attrs.updated(**{COMPILER: spec.target.toolchain, TARGET: str(spec.target)})
