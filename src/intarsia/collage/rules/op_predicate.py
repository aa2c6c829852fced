"""Each call that a toolchain supports."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.must_be_lowered import open_calls
from intarsia.collage.rules.unit_support import UnitSupport
from intarsia.collage.sub_graph import SubGraph
from intarsia.op.operator_predicate import OperatorPredicate


@dataclass(frozen=True, slots=True)
class OpPredicatePartitionRule:
    """One candidate for each call of an operator that a predicate accepts (seed collage_rfc).

    Loop, Scan and SequenceMap take their body along, whose calls must be accepted too; so must the calls in a
    Composite function that belongs to no toolchain. Those of the spec's own toolchain are always accepted,
    those of others never. Linear.

    Attributes:
        predicate: Such as `op.operator_predicate` gives.
    """

    predicate: OperatorPredicate

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The accepted calls in order."""
        support = UnitSupport(graph, self.predicate, spec.target.toolchain or spec.name)
        return [
            CandidatePartition(SubGraph.of(graph, graph.unit(index)), spec)
            for index in open_calls(graph)
            if support.takes(index)
        ]
