"""An Identity behind each input of a model: a way around what engines do to inputs that they pass through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from intarsia.toolchain.external_weights import all_graphs

if TYPE_CHECKING:
    from onnx import GraphProto

_SUFFIX: Final = "__input"


def put_identity_behind_inputs(graph: GraphProto) -> None:
    """Rename the inputs and compute the old names from them; nothing else changes.

    Before: `x -> Dropout -> y`.  After: `x__input -> Identity -> x -> Dropout -> y`.
    """
    from onnx import helper

    defaults = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in defaults]
    nodes = [helper.make_node("Identity", [behind(name)], [name]) for name in names]
    for value in graph.input:
        if value.name not in defaults:
            value.name = behind(value.name)
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])


def behind(name: str) -> str:
    """What an input of that name is called once an Identity stands behind it."""
    return name + _SUFFIX


def used_names(graph: GraphProto) -> frozenset[str]:
    """Every name that a node of the graph or of a nested one reads, or that is an output."""
    read = {name for inner in all_graphs(graph) for node in inner.node for name in node.input}
    return frozenset(read | {value.name for inner in all_graphs(graph) for value in inner.output})
