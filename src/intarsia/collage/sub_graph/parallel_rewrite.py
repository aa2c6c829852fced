"""A function in which many sub-graphs have become calls, all at once."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.sub_graph.constant_placement import ConstantPlacement
from intarsia.collage.sub_graph.contraction import contracted
from intarsia.collage.sub_graph.outline import outline
from intarsia.collage.sub_graph.quotient import quotient_cycle
from intarsia.collage.sub_graph.sub_graph import NestedSubGraph, SubGraph
from intarsia.ir import Function
from intarsia.support.errors import UsageError


def parallel_rewrite(
    graph: DataflowGraph,
    sub_graphs: Sequence[SubGraph],
    constants: ConstantPlacement = ConstantPlacement.BOUND,
) -> Function:
    """The graph's function with every nested sub-graph called as a function literal, in its place.

    Nested sub-graphs of those become calls inside of the literals. A sub-graph with several exits returns a
    tuple, whose fields stand for them. Sub-graphs in branches, bodies of lets and of literals stay there.
    Nodes in no nested sub-graph stay as they are; the same function comes back if there are none. Types,
    spans and virtual devices of values are kept. PartitionGraph makes global functions of the literals.
    Linear in the function, times the depth of nesting.

    Args:
        graph: The graph of the function.
        sub_graphs: Sub-graphs of it, as with_attrs makes them.
        constants: Treatment of the constants that they use.

    Raises:
        UsageError: Two overlap, one cannot become a function, or some need each other in a circle.
    """
    _check_disjoint(graph, sub_graphs)
    regions = [region for sub_graph in sub_graphs for region in sub_graph.nested]
    for sub_graph in sub_graphs:
        reason = sub_graph.structure_complaint if sub_graph.nested else None
        if reason is not None:
            raise UsageError(f"the sub-graph {sub_graph} cannot become a function: it {reason}")
    _check_acyclic(graph, regions)
    outlines = [outline(region.sub_graph, region.attrs, constants) for region in regions]
    (after,) = contracted((graph.function,), outlines, {}, {})
    assert isinstance(after, Function)
    return after


def _check_disjoint(graph: DataflowGraph, sub_graphs: Sequence[SubGraph]) -> None:
    owner: dict[int, SubGraph] = {}
    for sub_graph in sub_graphs:
        if sub_graph.graph is not graph:
            raise UsageError(f"the sub-graph {sub_graph} is of another graph")
        for index in sub_graph.inside:
            other = owner.setdefault(index, sub_graph)
            if other is not sub_graph:
                raise UsageError(f"the sub-graphs {other} and {sub_graph} overlap: both hold node {index}")


def _check_acyclic(graph: DataflowGraph, regions: Sequence[NestedSubGraph]) -> None:
    """Level by level of nesting, so that each takes one walk over the graph."""
    while regions:
        circle = quotient_cycle(graph, [region.sub_graph.inside for region in regions])
        if circle:
            found = "; ".join(str(regions[position].sub_graph) for position in circle)
            raise UsageError(
                f"these sub-graphs need each other's results, so that none can be called first: {found}",
                help="allow them one result each, or join them",
            )
        regions = [inner for region in regions for inner in region.sub_graph.nested]
