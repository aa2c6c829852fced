"""Bring a model to the pinned opset (docs/decisions/0002).

Most models need no conversion: a number is changed where every operator in use means the same at both
versions. Else onnx's converter does it, both upward and, where it can, downward. What it refuses downward is
tried once more: operators of newer opsets only are replaced by their definition, and operators with a
newer version that only accepts more element types are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from intarsia.frontend.onnx.convertible import check_domains, check_nodes, untyped_argument
from intarsia.frontend.onnx.graph_walk import label, nodes_of
from intarsia.frontend.onnx.label_encoder import rewrite_label_encoders
from intarsia.frontend.onnx.legacy_ops import (
    check_functions,
    resize_modes,
    restore_resize,
    rewrite_legacy_operators,
)
from intarsia.frontend.onnx.onnx_errors import error_essence, onnx_errors
from intarsia.frontend.onnx.operator_definitions import has_definition, with_local_definitions
from intarsia.frontend.onnx.read_model import RawModel
from intarsia.frontend.onnx.wire import LARGE
from intarsia.ir import TensorType
from intarsia.op.control_flow import BODY_OPERATORS
from intarsia.op.onnx_types import tensor_to_proto, type_to_proto
from intarsia.op.opset import OPSETS, PINNED_OPSET, schema_at, version_of, versions_of
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto
    from onnx.defs import OpSchema


_NAMED_NODES = 3
"""Number of nodes that an error names."""


def opset_versions(message: ModelProto | FunctionProto) -> dict[str, int]:
    """Version of each operator domain that a model or function declares."""
    return {item.domain: item.version for item in message.opset_import}


def to_pinned_opset(raw: RawModel) -> ModelProto:
    """Convert the model's message to the pinned versions of all domains; `raw` is not changed.

    The main graph's initializers may be back in the result where the converter made new ones; weights of
    `raw` are still to be taken by name.

    Raises:
        UnsupportedModelError: Some operator cannot be converted.
    """
    model = raw.proto
    if model.functions:
        model = _without_functions(model)
    with_bodies = {(node.domain, node.op_type) for node in nodes_of(model.graph) if has_foreign_body(node)}
    if with_bodies:
        check_nodes(nodes_of(model.graph), opset_versions(model))
        try:
            model = defined_by_body(declare_weights(model, raw.weights), with_bodies)
        except UnsupportedModelError as error:
            error.add_note(
                f"operators with graphs: {_names(list(filter(has_foreign_body, model.graph.node)))}"
            )
            raise
    model = rewrite_label_encoders(model)
    versions = opset_versions(model)
    changed = [node for node in nodes_of(model.graph) if not _same_meaning(node, versions)]
    if changed:
        check_domains(changed, versions)
        check_nodes(nodes_of(model.graph), versions)
        untyped = untyped_argument(declare_weights(model, raw.weights).graph)
        if untyped is not None:
            refusal = _unconvertible(
                versions.get("", 0), f"{untyped.op_type!r} reads a value of an unknown type"
            )
            refusal.add_note(f"at node {label(untyped)!r}")
            raise refusal
        try:
            model = _converted(model, raw.weights, versions)
        except UnsupportedModelError as error:
            error.add_note(f"operators that changed: {_names(changed)}")
            raise
    result = type(model)()
    result.CopyFrom(model)
    del result.opset_import[:]
    spoken = versions_of((node.domain, node.op_type) for node in nodes_of(result.graph))
    for domain, version in {**OPSETS, **spoken}.items():
        result.opset_import.add(domain=domain, version=version)
    return result


def _names(nodes: list[NodeProto]) -> str:
    names = [f"{node.op_type!r} at node {label(node)!r}" for node in nodes[:_NAMED_NODES]]
    more = len(nodes) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def has_foreign_body(node: NodeProto) -> bool:
    """Whether a node has graphs but is no control-flow operator of the language."""
    known = node.op_type in BODY_OPERATORS or node.op_type == "If"
    return not (known and not node.domain) and any(item.HasField("g") for item in node.attribute)


def _without_functions(model: ModelProto) -> ModelProto:
    from onnx import inliner

    check_functions(model, opset_versions(model).get("", PINNED_OPSET))
    try:
        return inliner.inline_local_functions(model, convert_version=True)
    except onnx_errors() as error:
        raise InvalidModelError(
            f"the model's own functions cannot be inlined: {error_essence(error)}"
        ) from None


def _same_meaning(node: NodeProto, versions: dict[str, int]) -> bool:
    """Whether a node means the same at the model's and at the pinned version of its domain."""
    domain = node.domain
    if domain not in OPSETS or domain not in versions or versions[domain] == OPSETS[domain]:
        return True  # equal, or unknown: the graph check reports it with the node's name
    pinned = version_of(node.op_type, domain)
    before, after = (schema_at(node.op_type, at, domain) for at in (versions[domain], pinned))
    if before is None or after is None:
        return False
    if before.since_version == after.since_version:
        return True
    return bool(domain) and _only_types_differ(node, before, after)


def _only_types_differ(node: NodeProto, before: OpSchema, after: OpSchema) -> bool:
    """Whether both versions have the same inputs and outputs, and the attributes that the node uses."""
    return (
        [item.name for item in before.inputs] == [item.name for item in after.inputs]
        and [item.name for item in before.outputs] == [item.name for item in after.outputs]
        and all(item.name in after.attributes for item in node.attribute)
    )


def _converted(
    model: ModelProto, weights: dict[str, npt.NDArray[Any]], versions: dict[str, int]
) -> ModelProto:
    from onnx import version_converter

    version = versions.get("", 0)
    complete = declare_weights(model, weights)
    try:
        modes = resize_modes(complete, version)
        complete = rewrite_legacy_operators(complete, version)
        converted = version_converter.convert_version(complete, PINNED_OPSET)
    except onnx_errors() as error:
        if version > PINNED_OPSET:
            return _expanded(complete, versions)
        raise _unconvertible(version, error_essence(error)) from None
    restore_resize(modes, converted, version)
    _check_interface(model.graph, converted.graph, version)
    return converted


def _check_interface(before: GraphProto, after: GraphProto, version: int) -> None:
    """Refuse a conversion that changed the rank of an input: Scan had a batch axis before opset 9."""
    ranks = {item.name: len(item.type.tensor_type.shape.dim) for item in after.input}
    for item in before.input:
        rank = len(item.type.tensor_type.shape.dim)
        if ranks.get(item.name, rank) != rank:
            reason = f"input {item.name!r} would have {ranks[item.name]} dimensions instead of {rank}"
            raise _unconvertible(version, reason)


def declare_weights(model: ModelProto, weights: Mapping[str, npt.NDArray[Any]]) -> ModelProto:
    """A copy for onnx's own functions: small weights as initializers, as they read some, large as inputs."""
    complete = type(model)()
    complete.CopyFrom(model)
    inputs = {item.name for item in complete.graph.input}
    present = {item.name for item in complete.graph.initializer}
    for name, array in weights.items():
        if name in present:
            continue
        if array.nbytes < LARGE:
            complete.graph.initializer.append(tensor_to_proto(array, name))
        elif name not in inputs:
            complete.graph.input.add(name=name, type=type_to_proto(TensorType.of(array)))
    return complete


def _expanded(model: ModelProto, versions: dict[str, int]) -> ModelProto:
    """Replace the operators that the pinned opset lacks by their definition; keep those that only widened."""
    newer = {("", node.op_type) for node in nodes_of(model.graph) if _needs_definition(node, versions)}
    if newer:
        model = defined_by_body(model, newer)
    versions = opset_versions(model)
    for node in nodes_of(model.graph):
        if node.domain:
            continue
        before, after = (schema_at(node.op_type, version) for version in (versions[""], PINNED_OPSET))
        if before is None or after is None or not _only_types_differ(node, before, after):
            error = _unconvertible(versions[""], f"operator {node.op_type!r} has no equivalent there")
            error.add_note(f"at node {label(node)!r}")
            raise error
    return model


def defined_by_body(model: ModelProto, operators: set[tuple[str, str]]) -> ModelProto:
    """Replace operators, as (domain, name), by the functions that ONNX defines them with."""
    from onnx import inliner, shape_inference

    try:
        typed = shape_inference.infer_shapes(model)  # the inliner needs the types of what it replaces
        with suppress(*onnx_errors()):
            return inliner.inline_selected_functions(
                typed, sorted(operators), exclude=False, inline_schema_functions=True
            )
        return with_local_definitions(typed, operators)
    except onnx_errors() as error:
        names = ", ".join(repr(name) for _, name in sorted(operators))
        raise UnsupportedModelError(
            f"onnx cannot replace {names} by its definition: {error_essence(error)}",
            help=f"export the model at opset {PINNED_OPSET} or below, without optional inputs and outputs",
        ) from None


def _needs_definition(node: NodeProto, versions: dict[str, int]) -> bool:
    """Whether the pinned opset lacks an operator, or an attribute of it, and ONNX has a definition."""
    if node.domain:
        return False
    before, after = (schema_at(node.op_type, version) for version in (versions[""], PINNED_OPSET))
    if before is None or after is None:
        return before is not None
    return has_definition(before) and not _only_types_differ(node, before, after)


def _unconvertible(version: int, reason: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"the model's opset {version} cannot be converted to opset {PINNED_OPSET}: {reason}",
        help=f"export the model at opset {PINNED_OPSET} or below",
    )
