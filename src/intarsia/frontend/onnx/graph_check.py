"""Checks of a model with errors that name the node: unknown operators and domains, names, cycles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from intarsia.frontend.onnx.contrib import has_definition
from intarsia.frontend.onnx.graph_walk import label, nodes_of, with_nested
from intarsia.frontend.onnx.legacy_ops import is_deprecated_but_known
from intarsia.frontend.onnx.opset import opset_versions
from intarsia.op.attribute_check import check_attribute_values
from intarsia.op.opaque import is_declared
from intarsia.op.opset import (
    INTARSIA_DOMAIN,
    OPSETS,
    PINNED_OPSET,
    schema_at,
    schema_of,
    unknown_operator,
)
from intarsia.support.errors import InvalidModelError, ModelError, UnsupportedModelError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto


def check_opsets(model: ModelProto) -> None:
    """Check that the model declares its opset, and that the installed onnx supports it.

    Raises:
        InvalidModelError: It does not say, or says a number below 1.
        UnsupportedModelError: The opset is newer than the installed onnx package.
    """
    from onnx import defs

    versions = opset_versions(model)
    if not versions:
        raise InvalidModelError("the model does not say its opset: opset_import is empty")
    for domain, version in versions.items():
        if version < 1:
            raise InvalidModelError(
                f"the model has version {version} of the domain {domain!r}, expected 1 or more"
            )
    newest = defs.onnx_opset_version()
    if versions.get("", 1) > newest:
        raise UnsupportedModelError(
            f"the model has the opset {versions['']}; "
            f"the newest that the installed onnx supports is {newest}",
            help=f"export the model at opset {PINNED_OPSET}, or install a newer onnx",
        )


def check_operators(model: ModelProto) -> None:
    """Check that every node's operator exists at the version that the model declares for its domain.

    Raises:
        UnsupportedModelError: A domain that Intarsia does not know.
        InvalidModelError: An operator that a known domain lacks, or an undeclared domain.
    """
    local = {(item.domain, item.name) for item in model.functions}
    _check_nodes(nodes_of(model.graph), opset_versions(model), local)
    for function in model.functions:
        try:
            _check_nodes(with_nested(function.node), opset_versions(function), local)
        except ModelError as error:
            error.add_note(f"in the model's function {function.name!r} of the domain {function.domain!r}")
            raise


def _check_nodes(
    nodes: Iterable[NodeProto], versions: Mapping[str, int], local: set[tuple[str, str]]
) -> None:
    for node in nodes:
        domain = node.domain
        if (domain, node.op_type) in local or domain == INTARSIA_DOMAIN:
            continue
        if domain not in OPSETS:
            _check_foreign(node)
            continue
        if domain not in versions:
            raise InvalidModelError(
                f"node {label(node)!r} uses the domain {domain!r}, which the model does not import"
            )
        version = versions[domain]
        is_known = not domain and is_deprecated_but_known(node.op_type, version)
        if not is_known and schema_at(node.op_type, version, domain) is None:
            error = unknown_operator(node.op_type, domain, version)
            error.add_note(f"at node {label(node)!r}")
            raise error
        _check_values(node)


def _check_foreign(node: NodeProto) -> None:
    """A node of a domain that ONNX lacks needs a definition, or a package that declares the domain."""
    if has_definition(node.domain, node.op_type):
        return
    used = f"node {label(node)!r} uses the operator {node.op_type!r} of the domain {node.domain!r}"
    if not is_declared(node.domain):
        raise UnsupportedModelError(
            f"{used}, which is not one of ONNX's, and no installed package declares it",
            help="install the package that registers it, or export the model with ONNX's own operators",
        )
    try:
        schema_of(node.op_type, node.domain)
    except ModelError as error:
        error.add_note(f"at node {label(node)!r}")
        raise
    if any(item.HasField("g") for item in node.attribute):
        raise UnsupportedModelError(
            f"{used}, which has a graph as an attribute; opaque operators cannot have one",
            help="export the model without the search loop (its decoder alone), and loop in your own code",
        )


def _check_values(node: NodeProto) -> None:
    values = {item.name: _text(item.s) if item.HasField("s") else item.i for item in node.attribute}
    try:
        check_attribute_values(node.op_type, values)
    except ModelError as error:
        error.add_note(f"at node {label(node)!r}")
        raise


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def check_names(graph: GraphProto) -> None:
    """Check that the inputs of a graph have different names.

    Raises:
        InvalidModelError: Two have.
    """
    names = [item.name for item in graph.input]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidModelError(f"the model has two inputs named {twice!r}")


def in_execution_order(graph: GraphProto, outer: Iterable[str]) -> list[NodeProto]:
    """Return the graph's nodes in topological order.

    Args:
        graph: One graph, without the nested ones.
        outer: Names that are defined before it runs: inputs, initializers, values of enclosing graphs.

    Raises:
        InvalidModelError: Two nodes produce one name, an input that nothing produces, or a cycle.
    """
    nodes = list(graph.node)
    producers = _producers(nodes)
    defined = set(outer)
    reads = [_reads(node) for node in nodes]
    for node, names in zip(nodes, reads, strict=True):
        missing = next((name for name in names if name not in producers and name not in defined), None)
        if missing is not None:
            raise InvalidModelError(f"node {label(node)!r} reads {missing!r}, which nothing produces")
    if _is_ordered(reads, producers):
        return nodes
    needs = {
        index: [producers[name] for name in names if name in producers] for index, names in enumerate(reads)
    }
    try:
        return [nodes[index] for index in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        cycle = " -> ".join(repr(label(nodes[index])) for index in error.args[1][:8])
        raise InvalidModelError(
            f"the graph has a cycle: {cycle}", help="an ONNX graph is acyclic: use Loop for repetition"
        ) from None


def _is_ordered(reads: list[list[str]], producers: Mapping[str, int]) -> bool:
    return all(producers.get(name, -1) < index for index, names in enumerate(reads) for name in names)


def _producers(nodes: list[NodeProto]) -> dict[str, int]:
    producers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in producers:
                both = " and ".join(
                    f"{label(item)!r} ({item.op_type})" for item in (nodes[producers[name]], node)
                )
                raise InvalidModelError(f"two nodes produce {name!r}: {both}")
            producers[name] = index
    return producers


def _reads(node: NodeProto) -> list[str]:
    """Names that a node needs from its graph, those that its nested graphs capture included."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            names += _captured(attribute.g)
    return names


def _captured(graph: GraphProto) -> list[str]:
    inner = {item.name for item in (*graph.input, *graph.initializer)}
    inner.update(name for node in graph.node for name in node.output)
    used = [name for node in graph.node for name in _reads(node)]
    used += [item.name for item in graph.output]
    return [name for name in used if name not in inner]
