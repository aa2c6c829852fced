"""Candidates of rules as texts, and what partitioning with some of them gives, for tests of Collage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.collage_programs import main_graph

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph import parallel_rewrite
from intarsia.ir import Call, IRModule, Op
from intarsia.op import verify
from intarsia.target import Target

ACME = Target("cpu -toolchain=acme")


def spec_of(rule: PartitionRule, target: Target = ACME) -> PartitionSpec:
    return PartitionSpec(target.toolchain or "native", target, rule)


def found_by(rule: PartitionRule, graph: DataflowGraph, target: Target = ACME) -> list[CandidatePartition]:
    return rule.all_candidates(graph, spec_of(rule, target))


def labels(candidates: Iterable[CandidatePartition]) -> list[str]:
    """What the candidates hold, sorted."""
    return sorted(one.sub_graph.label for one in candidates)


def call_numbers(graph: DataflowGraph, candidate: CandidatePartition) -> tuple[int, ...]:
    """Which calls of operators a candidate holds, counted from 0; other nodes are left out."""
    operators = [node.index for node in graph if isinstance(node.expr, Call) and isinstance(node.expr.op, Op)]
    return tuple(number for number, index in enumerate(operators) if index in candidate.sub_graph.inside)


def numbers(graph: DataflowGraph, candidates: Iterable[CandidatePartition]) -> set[tuple[int, ...]]:
    """The calls of each candidate; fails if two candidates hold the same nodes."""
    found = list(candidates)
    assert len({one.sub_graph.inside for one in found}) == len(found)
    return {call_numbers(graph, one) for one in found}


def partitioned_by(mod: IRModule, chosen: Sequence[CandidatePartition]) -> IRModule:
    """The module with some candidates for @main's own graph in their places."""
    graph = chosen[0].sub_graph.graph if chosen else main_graph(mod)
    after = mod.with_function("main", parallel_rewrite(graph, [one.sub_graph for one in chosen]))
    verify(after)
    return after
