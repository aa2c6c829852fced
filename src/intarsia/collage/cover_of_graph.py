"""A graph with its candidates as a covering problem, and covers of it as placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import Cost, CostKind
from intarsia.collage.costs.boundary_costs import BoundaryCosts
from intarsia.collage.costs.work_shares import value_bytes
from intarsia.collage.gather_specs import HOST
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import Composite, Partition, stable_nodes
from intarsia.collage.search import INVALID, Cover, CoverProblem, Parameter, Piece
from intarsia.collage.sub_graph import NestedSubGraph, SubGraph
from intarsia.ir import Var


@dataclass(frozen=True, eq=False)
class GraphCover:
    """The covering problem of a graph.

    Parameters and what is everywhere (constants, operators, absent arguments) need no cover and are no nodes
    of the problem.

    Attributes:
        graph: The graph.
        candidates: Candidates by index of the piece.
        nodes: The graph's index of each node of the problem.
        problem: The problem.
    """

    graph: DataflowGraph
    candidates: tuple[CandidatePartition, ...]
    nodes: tuple[int, ...]
    problem: CoverProblem

    @classmethod
    def of(
        cls,
        graph: DataflowGraph,
        candidates: Sequence[CandidatePartition],
        boundaries: BoundaryCosts,
        conflicts: frozenset[tuple[str, str]] = frozenset(),
        bounds: Mapping[CandidatePartition, float] | None = None,
    ) -> GraphCover:
        """The problem of choosing among candidates; those that hold no node of it are left out.

        Args:
            graph: The graph.
            candidates: Their costs may be unknown.
            boundaries: Costs of boundaries between toolchains.
            conflicts: Names of toolchains that must not occur together.
            bounds: Seconds that candidates of unknown cost take at least; 0 if not given.
        """
        nodes = tuple(node.index for node in graph if _is_covered(graph, node.index))
        number_of = {index: number for number, index in enumerate(nodes)}
        names = tuple(dict.fromkeys(each.spec.name for each in candidates))
        runners = {each.spec.name: each.spec.toolchain for each in candidates}
        toolchains = [HOST if name == HOST else runners[name] for name in names]
        kept, pieces = [], []
        for candidate in candidates:
            mask = sum(1 << number_of[index] for index in candidate.sub_graph.inside if index in number_of)
            if mask:
                kept.append(candidate)
                bound = (bounds or {}).get(candidate, 0.0)
                pieces.append(Piece(mask, names.index(candidate.spec.name), _seconds(candidate.cost), bound))
        pairs = {
            (first, second)
            for first in range(len(names))
            for second in range(len(names))
            if (toolchains[first], toolchains[second]) in conflicts
        }
        problem = CoverProblem(
            operands=tuple(_operands(graph, index, number_of) for index in nodes),
            sizes=tuple(float(value_bytes(graph[index].expr.checked_type)) for index in nodes),
            results=sum(
                1 << number_of[node.index] for node in graph if node.is_external and node.index in number_of
            ),
            pieces=tuple(pieces),
            dispatch=tuple(boundaries.dispatch(name) for name in toolchains),
            transition=boundaries.transition(toolchains),
            parameters=_parameters(graph, number_of),
            conflicts=frozenset(pairs),
        )
        return cls(graph, tuple(kept), nodes, problem)

    def partitions(self, cover: Cover, function: str) -> tuple[Partition, ...]:
        """The partitions of a cover that are to be functions, in order of their first nodes."""
        chosen = [self.candidates[index] for index in cover.pieces]
        marked = [each for each in chosen if each.spec.name != HOST and each.sub_graph.nested]
        ordered = sorted(marked, key=lambda each: each.sub_graph.inside)
        return tuple(partition_of(each, function) for each in ordered)


def partition_of(candidate: CandidatePartition, function: str) -> Partition:
    """A candidate as plain data."""
    sub_graph = candidate.sub_graph
    number = {index: count for count, index in enumerate(stable_nodes(sub_graph.graph))}
    composites = tuple(
        Composite(str(each.attrs["Composite"]), _numbers(each.sub_graph, number))
        for each in _inner(sub_graph.nested)
        if "Composite" in each.attrs
    )
    nodes = _numbers(sub_graph, number)
    return Partition(function, str(candidate.spec.target), nodes, sub_graph.label, composites)


def _numbers(sub_graph: SubGraph, number: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(number[index] for index in sub_graph.inside if index in number)


def _inner(nested: Sequence[NestedSubGraph]) -> list[NestedSubGraph]:
    return [found for each in nested for found in (each, *_inner(each.sub_graph.nested))]


def _is_covered(graph: DataflowGraph, index: int) -> bool:
    return index not in graph.everywhere and not isinstance(graph[index].expr, Var)


def _operands(graph: DataflowGraph, index: int, place: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(sorted({place[one] for one in graph.flow_inputs[index] if one in place}))


def _parameters(graph: DataflowGraph, number_of: Mapping[int, int]) -> tuple[Parameter, ...]:
    parameters = []
    for node in graph:
        if isinstance(node.expr, Var):
            users = [number_of[user] for user in graph.flow_outputs[node.index] if user in number_of]
            parameters.append(
                Parameter(float(value_bytes(node.expr.checked_type)), sum(1 << user for user in users))
            )
    return tuple(parameters)


def _seconds(cost: Cost) -> float | None:
    if cost.kind is CostKind.UNKNOWN:
        return None
    return INVALID if cost.kind is CostKind.INVALID else cost.seconds
