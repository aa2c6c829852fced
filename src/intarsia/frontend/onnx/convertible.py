"""Checks before calls of onnx: its converter and its inference read attributes and arguments unchecked.

An attribute of another type, or an argument that is not there, ends the process in their C++ code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from intarsia.frontend.onnx.graph_walk import graphs_of, label, nodes_of
from intarsia.op.control_flow import BODY_OPERATORS
from intarsia.op.opset import ML_DOMAIN, OPSETS
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto
    from onnx.defs import OpSchema


def check_domains(changed: Iterable[NodeProto], versions: Mapping[str, int]) -> None:
    """Refuse nodes of other domains than the default one, the only one that the converter handles.

    Args:
        changed: Nodes that mean something else at the pinned version of their domain.
        versions: Version of each domain that the model declares.

    Raises:
        UnsupportedModelError: There is one.
    """
    for node in changed:
        if node.domain:
            error = UnsupportedModelError(
                f"operator {node.op_type!r} changed between version {versions[node.domain]} of the domain "
                f"{node.domain!r}, which the model uses, and version {OPSETS[node.domain]}"
            )
            error.add_note(f"at node {label(node)!r}")
            raise error


def check_nodes(nodes: Iterable[NodeProto], versions: Mapping[str, int]) -> None:
    """Refuse nodes of ONNX's own domains that do not fit their operators.

    Args:
        nodes: All nodes of a model.
        versions: Version of each domain that the model declares.

    Raises:
        InvalidModelError: An attribute is of another type, or there are too few or too many arguments or
            results.
    """
    for node in nodes:
        has_bodies = node.op_type == "If" or node.op_type in BODY_OPERATORS  # the importer checks those
        schema = None if has_bodies and not node.domain else _schema(node, versions)
        problem = None if schema is None else _misfit(node, schema)
        if problem is not None:
            error = InvalidModelError(f"operator {node.op_type!r} {problem}")
            error.add_note(f"at node {label(node)!r}")
            raise error


def untyped_argument(graph: GraphProto) -> NodeProto | None:
    """Return a node with a possibly untyped argument on which onnx 1.23 would end the process.

    Args:
        graph: The main graph of a model.
    """
    declared = {item.name for part in graphs_of(graph) for item in (*part.input, *part.initializer)}
    results = {name for node in nodes_of(graph) if not node.domain for name in node.output}
    typed_for = {
        ("", "EyeLike"): declared | results,
        (ML_DOMAIN, "DictVectorizer"): declared,  # of a map, which no operator of the default domain gives
    }
    for node in nodes_of(graph):
        typed = typed_for.get((node.domain, node.op_type))
        if typed is None:
            continue
        if not typed.issuperset(node.input) or set(node.input) & set(node.output):
            return node
    return None


def _schema(node: NodeProto, versions: Mapping[str, int]) -> OpSchema | None:
    """Return ONNX's schema of an operator, a deprecated one included: the import rewrites some of those."""
    from onnx import defs

    try:
        return defs.get_schema(node.op_type, versions.get(node.domain, 0), node.domain)
    except defs.SchemaError:
        return None


def _misfit(node: NodeProto, schema: OpSchema) -> str | None:
    """Return why a node does not fit its operator; None if it does."""
    for item in node.attribute:
        declared = schema.attributes.get(item.name)
        if declared is not None and item.type != declared.type.value:
            return f"has an attribute {item.name!r} that is no {declared.type.name}"
    for kind, names, fewest, most in (
        ("arguments", node.input, schema.min_input, schema.max_input),
        ("results", node.output, schema.min_output, schema.max_output),
    ):
        if not fewest <= len(names) <= most:
            count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            return f"has {len(names)} {kind}, expected {count}"
    for name, parameter in zip(node.input, schema.inputs, strict=False):
        if not name and parameter.option.name == "Single":
            return f"lacks its argument {parameter.name!r}"
    return None
