"""Walking a graph with the graphs nested in its nodes, and what people call a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def with_nested(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes, and all nodes of the graphs nested in them."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            yield node
            pending += [attribute.g.node for attribute in node.attribute if attribute.HasField("g")]


def nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    """All nodes of a graph, those of nested graphs included."""
    return with_nested(graph.node)


def graphs_of(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and all graphs nested in it."""
    yield graph
    for node in nodes_of(graph):
        yield from (attribute.g for attribute in node.attribute if attribute.HasField("g"))


def label(node: NodeProto) -> str:
    """Return a node's label for messages: its name, or its first output."""
    return node.name or next(iter(node.output), "") or node.op_type
