"""Final rewrites of an exported graph, nested graphs included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from intarsia.frontend.onnx.graph_walk import graphs_of, nodes_of
from intarsia.op.opaque import usable_domain
from intarsia.op.opset import INTARSIA_DOMAIN, OPSETS, schema_of

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def rename_values(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename values wherever they are produced, read or returned by a nested graph."""
    for node in nodes_of(graph):
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for nested in graphs_of(graph):
        for output in nested.output:
            if nested is not graph:
                output.name = names.get(output.name, output.name)


def drop_unused_nodes(graph: GraphProto) -> None:
    """Drop nodes whose results nothing uses, as an unused binding gives: time is linear in the nodes.

    onnxruntime (1.31) fails on branches of an If that have such nodes: it puts a branch with a constant
    condition in the place of its If, and then misses what the unused node and another one read.
    """
    _drop_unused(graph, set())


def _drop_unused(graph: GraphProto, needed: set[str]) -> None:
    """Drop the nodes of a graph whose results are not needed; adds the names that the other nodes read.

    Nodes follow those whose results they read, and names are unique in all graphs of a model.
    """
    needed.update(output.name for output in graph.output)
    kept = []
    for node in reversed(graph.node):
        if needed.isdisjoint(node.output):
            continue
        kept.append(node)
        needed.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _drop_unused(attribute.g, needed)
    if len(kept) < len(graph.node):
        del graph.node[:]
        graph.node.extend(reversed(kept))


def drop_unused_outputs(graph: GraphProto) -> None:
    """Drop optional outputs without readers: toolchains then select faster kernels."""
    used = {name for node in nodes_of(graph) for name in node.input}
    used |= {output.name for nested in graphs_of(graph) for output in nested.output}
    for node in nodes_of(graph):
        formals = _formal_outputs(node)
        if len(node.output) < 2 or not formals:
            continue
        kept = [
            name
            if name in used or position >= len(formals) or formals[position].option.name != "Optional"
            else ""
            for position, name in enumerate(node.output)
        ]
        while len(kept) > 1 and not kept[-1]:
            kept.pop()
        node.ClearField("output")
        node.output.extend(kept)


def _formal_outputs(node: NodeProto) -> Sequence[Any]:
    """The outputs that a node's operator declares; none where nothing is declared."""
    if node.domain in OPSETS:
        return () if node.domain == INTARSIA_DOMAIN else schema_of(node.op_type, node.domain).outputs
    domain = usable_domain(node.domain)
    schema = None if domain is None else domain.schema(node.op_type)
    return () if schema is None else schema.outputs
