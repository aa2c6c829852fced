"""LabelEncoder as version 1 of ai.onnx.ml defines it: a list of strings, and their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.frontend.onnx.convertible import check_nodes
from intarsia.frontend.onnx.graph_walk import label, nodes_of
from intarsia.frontend.onnx.onnx_errors import onnx_errors
from intarsia.frontend.onnx.shapes import type_hints
from intarsia.ir import DType, TensorType, Type
from intarsia.op.onnx_types import type_from_proto, type_to_proto
from intarsia.op.opset import ML_DOMAIN
from intarsia.support.errors import InvalidModelError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_TABLES_SINCE = 2
"""Version of ai.onnx.ml from which on LabelEncoder has a list of keys and a list of values."""

_UNKNOWN_DOMAIN = "intarsia.passed_over"
"""Domain that hides nodes from onnx's inference."""


def rewrite_label_encoders(model: ModelProto) -> ModelProto:
    """Return the model with LabelEncoders of version 1 written as newer versions have them.

    A string becomes its position in the list, and a position becomes the string there; the type of the
    argument decides. The same model is returned where none is of version 1, or where a type is unknown.

    Args:
        model: The model; it is not changed.

    Raises:
        InvalidModelError: One of version 1 has no list of strings, or a node does not fit its operator.
    """
    version = next((item.version for item in model.opset_import if item.domain == ML_DOMAIN), _TABLES_SINCE)
    encoders = [node for node in nodes_of(model.graph) if _is_encoder(node)]
    if version >= _TABLES_SINCE or not encoders:
        return model
    check_nodes(nodes_of(model.graph), {item.domain: item.version for item in model.opset_import})
    types = _infer_types(model)
    if not all(isinstance(types.get(node.input[0]), TensorType) for node in encoders):
        return model
    result = type(model)()
    result.CopyFrom(model)
    for node in nodes_of(result.graph):
        if _is_encoder(node):
            type_ = types[node.input[0]]
            assert isinstance(type_, TensorType)
            _write_tables(node, type_.dtype is DType.STRING)
    for item in result.opset_import:
        if item.domain == ML_DOMAIN:
            item.version = _TABLES_SINCE  # no other operator differs between versions 1 and 2
    return result


def _is_encoder(node: NodeProto) -> bool:
    return bool(node.domain == ML_DOMAIN and node.op_type == "LabelEncoder")


def _infer_types(model: ModelProto) -> dict[str, Type]:
    """Return the types that onnx infers, without giving it the LabelEncoders.

    onnx 1.23 ends the process at a LabelEncoder of version 1 with an untyped argument. So their results are
        typed here, and the types after them are inferred then, in rounds.
    """
    hidden = type(model)()
    hidden.CopyFrom(model)
    hidden.opset_import.add(domain=_UNKNOWN_DOMAIN, version=1)
    encoders = [node for node in nodes_of(hidden.graph) if _is_encoder(node)]
    for node in encoders:
        node.domain = _UNKNOWN_DOMAIN
    while True:
        types = _infer(hidden)
        arguments = {node.output[0]: types.get(node.input[0]) for node in encoders}
        new = {
            name: TensorType(type_.shape, DType.INT64 if type_.dtype is DType.STRING else DType.STRING)
            for name, type_ in arguments.items()
            if name not in types and isinstance(type_, TensorType)
        }
        if not new:
            return types
        for name, type_ in new.items():
            hidden.graph.value_info.add(name=name, type=type_to_proto(type_))


def _infer(model: ModelProto) -> dict[str, Type]:
    from onnx import shape_inference

    try:
        model = shape_inference.infer_shapes(model)
    except onnx_errors():
        pass  # what is declared is still known
    inputs = {item.name: type_from_proto(item.type) for item in model.graph.input}
    return {**{name: type_ for name, type_ in inputs.items() if type_ is not None}, **type_hints(model.graph)}


def _write_tables(node: NodeProto, is_of_strings: bool) -> None:
    from onnx import helper

    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    strings = attributes.get("classes_strings", [])
    if not strings:
        error = InvalidModelError(f"operator {node.op_type!r} needs 'classes_strings', a list of strings")
        error.add_note(f"at node {label(node)!r}")
        raise error
    positions = list(range(len(strings)))
    if is_of_strings:
        tables = {"keys_strings": strings, "values_int64s": positions}
        tables["default_int64"] = attributes.get("default_int64", -1)
    else:
        tables = {"keys_int64s": positions, "values_strings": strings}
        tables["default_string"] = attributes.get("default_string", "_Unused")
    del node.attribute[:]
    node.attribute.extend(helper.make_attribute(name, value) for name, value in tables.items())
