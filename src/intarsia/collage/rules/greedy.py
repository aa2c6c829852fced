"""The regions that the greedy partitioning would make."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.block_item import BlockItem, block_items
from intarsia.collage.rules.must_be_lowered import must_be_lowered
from intarsia.collage.rules.unit_support import UnitSupport
from intarsia.collage.sub_graph import SubGraph
from intarsia.ir import TupleGetItem
from intarsia.op.operator_predicate import OperatorPredicate
from intarsia.passes.regions.acyclic_groups import acyclic_groups


@dataclass(frozen=True, slots=True)
class GreedyPartitionRule:
    """The largest connected regions of supported calls, as `passes.MergeCompilerRegions` makes them.

    With these among the candidates, Collage with one toolchain can always choose what `partition_for` does
    (seed collage_rfc, third success metric). One region for each call at most; costs what `acyclic_groups`
    costs.

    Attributes:
        predicate: Such as `op.operator_predicate` gives: whether the toolchain runs a call.
    """

    predicate: OperatorPredicate

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The regions of all blocks, disjoint within a block."""
        support = UnitSupport(graph, self.predicate, spec.target.toolchain or spec.name)
        candidates: list[CandidatePartition] = []
        for items in block_items(graph, support):
            place = {item.index: position for position, item in enumerate(items)}
            needs = [[place[one] for one in item.needs] for item in items]
            for group in acyclic_groups(_kinds(graph, items), needs):
                inside = graph.set_of()
                for position in group:
                    inside |= items[position].inside
                candidates.append(CandidatePartition(SubGraph.of(graph, inside), spec, "greedy"))
        return candidates


def _kinds(graph: DataflowGraph, items: list[BlockItem]) -> list[bool | None]:
    """True for calls that are taken; fields go with the call that they are of."""
    taken: dict[int, bool | None] = {}
    for item in items:
        if item.is_glue:
            is_field = isinstance(graph[item.index].expr, TupleGetItem)
            taken[item.index] = (is_field and any(taken[one] for one in item.needs)) or None
        else:
            is_call = must_be_lowered(graph[item.index].expr)
            taken[item.index] = (is_call and item.is_supported) or None
    return list(taken.values())
