"""Candidates that are looked up by what flows between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.index_set import IndexSet
from intarsia.collage.sub_graph import SubGraph


class CandidatePool:
    """Candidates of one spec and graph, found by their borders instead of by trying all.

    Args:
        graph: The graph.
        max_depth: The largest depth that a combined candidate may have; 0 for any.
    """

    def __init__(self, graph: DataflowGraph, max_depth: int = 0) -> None:
        self.graph = graph
        self.max_depth = max_depth
        self._candidates: list[CandidatePartition] = []
        self._by_entry: defaultdict[int, list[int]] = defaultdict(list)
        self._by_output: defaultdict[int, list[int]] = defaultdict(list)
        self._by_input: defaultdict[int, list[int]] = defaultdict(list)
        self._by_exit: defaultdict[int, list[int]] = defaultdict(list)

    def add(self, candidate: CandidatePartition) -> None:
        """Take a candidate in: as many steps as its border is long."""
        number, sub_graph = len(self._candidates), candidate.sub_graph
        self._candidates.append(candidate)
        for border, index in (
            (sub_graph.entry, self._by_entry),
            (sub_graph.output, self._by_output),
            (sub_graph.input - self.graph.everywhere, self._by_input),
            (sub_graph.exit, self._by_exit),
        ):
            for node in border:
                index[node].append(number)

    def downstream_of(self, sub_graph: SubGraph) -> Iterator[CandidatePartition]:
        """Candidates that use a value from inside, and do not overlap."""
        return self._disjoint(sub_graph, self._by_entry, sub_graph.output)

    def upstream_of(self, sub_graph: SubGraph) -> Iterator[CandidatePartition]:
        """Candidates whose values are used inside, and that do not overlap."""
        return self._disjoint(sub_graph, self._by_output, sub_graph.entry)

    def producers(self, node: int) -> tuple[CandidatePartition, ...]:
        """Candidates of which a node is an exit."""
        return tuple(self._candidates[number] for number in self._by_exit[node])

    def consumers(self, node: int) -> tuple[CandidatePartition, ...]:
        """Candidates of which a node is an input."""
        return tuple(self._candidates[number] for number in self._by_input[node])

    def union(
        self, parts: Iterable[CandidatePartition], more: IndexSet | None = None
    ) -> CandidatePartition | None:
        """Disjoint parts, and some further nodes, as one candidate; None if that is too deep."""
        first, *rest = parts
        whole = first.sub_graph
        for one in rest:
            whole = whole.disjoint_union(one.sub_graph)
        if more is not None:
            whole = whole.disjoint_union(SubGraph.of(self.graph, more))
        if self.max_depth and whole.depth > self.max_depth:
            return None
        return first.with_sub_graph(whole, _union_name((first, *rest)))

    def _disjoint(
        self, sub_graph: SubGraph, by_node: dict[int, list[int]], nodes: IndexSet
    ) -> Iterator[CandidatePartition]:
        numbers = {number for node in nodes for number in by_node.get(node, ())}
        for number in sorted(numbers):
            if not self._candidates[number].sub_graph.inside.intersects(sub_graph.inside):
                yield self._candidates[number]


def _union_name(parts: tuple[CandidatePartition, ...]) -> str:
    """The names joined by "+"; nothing if no part has one, so that the label is used."""
    if not any(part.rule_name for part in parts):
        return ""
    ordered = sorted(parts, key=lambda part: part.sub_graph.inside)
    return "+".join(part.rule_name or part.sub_graph.label for part in ordered)
