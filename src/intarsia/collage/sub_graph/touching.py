"""Whether two sub-graphs can be joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intarsia.collage.sub_graph.sub_graph import SubGraph


def are_touching(upstream: SubGraph, downstream: SubGraph) -> bool:
    """Whether the second uses a value of the first, and no other path leads from one to the other.

    So the union of two convex sub-graphs that touch is convex. Directional: ask both ways.
    """
    if upstream.inside.intersects(downstream.inside):
        return False
    if not upstream.output.intersects(downstream.entry):
        return False
    graph = upstream.graph
    return not graph.flows_into(upstream.output - downstream.inside, downstream.entry) and not (
        graph.flows_into(downstream.output - upstream.inside, upstream.entry)
    )


def are_self_contained(upstream: SubGraph, downstream: SubGraph) -> bool:
    """Whether the first is used by the second only, and the second uses nothing but the first.

    Constants, which every sub-graph can contain, do not count.
    """
    outer_input = downstream.input - downstream.graph.everywhere
    return upstream.output.is_subset(downstream.entry) and outer_input.is_subset(upstream.exit)
