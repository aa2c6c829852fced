"""Operators replaced by ONNX's definition of them, where onnx's inliner cannot.

For a context-dependent definition the inliner needs the type of every input, and has none for an absent
optional input. The definition itself accepts an empty type there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Final

from intarsia.frontend.onnx.graph_walk import graphs_of, nodes_of
from intarsia.support.free_names import numbered_names

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto, TypeProto
    from onnx.defs import OpSchema

_DOMAIN: Final = "intarsia.definitions"


def with_local_definitions(model: ModelProto, operators: Container[tuple[str, str]]) -> ModelProto:
    """Replace operators by calls of local functions, one definition for each call, and inline them.

    Args:
        model: Model with the types of its values.
        operators: Domain and name of the operators.

    Raises:
        ValueError: ONNX defines one of them by no function.
        onnx's errors: A definition cannot be made or inlined.
    """
    from onnx import inliner

    result = type(model)()
    result.CopyFrom(model)
    versions = {item.domain: item.version for item in model.opset_import}
    types = dict(_types(result))
    names = numbered_names("definition_")
    for node in list(nodes_of(result.graph)):
        if (node.domain, node.op_type) in operators:
            function = _definition(node, types, versions.get(node.domain, 0))
            function.domain, function.name = _DOMAIN, next(names)
            _call(node, function)
            result.functions.append(function)
    result.opset_import.add(domain=_DOMAIN, version=1)
    return inliner.inline_local_functions(result, convert_version=True)


def has_definition(schema: OpSchema) -> bool:
    """Whether ONNX defines an operator by a function of others."""
    return bool(schema.has_function or schema.has_context_dependent_function)


def _types(model: ModelProto) -> Iterator[tuple[str, TypeProto]]:
    from onnx import helper

    for graph in graphs_of(model.graph):
        for tensor in graph.initializer:
            yield tensor.name, helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        for item in (*graph.input, *graph.value_info, *graph.output):
            yield item.name, item.type


def _definition(node: NodeProto, types: dict[str, TypeProto], version: int) -> FunctionProto:
    from onnx import FunctionProto, TypeProto, defs

    schema = defs.get_schema(node.op_type, version, node.domain)
    function = FunctionProto()
    if schema.has_context_dependent_function:
        versions = [item for item in schema.context_dependent_function_opset_versions if item <= version]
        given = [types.get(name, TypeProto()).SerializeToString() for name in node.input]
        function.ParseFromString(
            schema.get_context_dependent_function_with_opset_version(
                max(versions, default=version), node.SerializeToString(), given
            )
        )
    elif schema.has_function:
        versions = [item for item in schema.function_opset_versions if item <= version]
        function.ParseFromString(schema.get_function_with_opset_version(max(versions, default=version)))
    else:
        raise ValueError(f"operator {node.op_type!r} has no definition")
    return function


def _call(node: NodeProto, function: FunctionProto) -> None:
    """Make a node a call of a function, which takes the attributes that the function names."""
    from onnx import defs, helper

    schema = defs.get_schema(node.op_type, domain=node.domain)
    given = {item.name: item for item in node.attribute}
    defaults = {
        name: helper.make_attribute(name, helper.get_attribute_value(schema.attributes[name].default_value))
        for name in function.attribute
        if name not in given and name in schema.attributes and schema.attributes[name].default_value.name
    }
    kept = [item for name, item in {**defaults, **given}.items() if name in function.attribute]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.domain, node.op_type = function.domain, function.name
