"""Conversion of an exported model from the pinned opset to the requested one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from intarsia.frontend.onnx.graph_walk import graphs_of, nodes_of
from intarsia.frontend.onnx.onnx_errors import error_essence, onnx_errors
from intarsia.frontend.onnx.opset import declare_weights
from intarsia.op.opset import PINNED_OPSET, schema_at
from intarsia.support.errors import UnsupportedModelError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto
    from onnx.defs import OpSchema


def convert_to_opset(model: ModelProto, opset: int, weights: dict[str, npt.NDArray[Any]]) -> ModelProto:
    """Convert an exported model to another opset; the same object where nothing changes.

    Args:
        model: Model at the pinned opset; initializers named in `weights` have no data.
        opset: Version of the default domain.
        weights: Large initializers.

    Raises:
        UnsupportedModelError: Some operator has no equivalent at that opset.
    """
    if opset == PINNED_OPSET:
        return model
    _check_meanings(model, opset)
    types = _type_names(_declared(model, weights))
    if not all(_stands_unchanged(node, opset, types) for node in nodes_of(model.graph)):
        model = _convert(model, opset, weights)
    for item in model.opset_import:
        if not item.domain:
            item.version = opset
    _check_valid(_declared(model, weights), opset)
    return model


MEANING_CHANGED = MappingProxyType(
    {
        "AveragePool": 19,
        "DFT": 20,
        "GridSample": 20,
        "GroupNormalization": 21,
        "Hardmax": 13,
        "LogSoftmax": 13,
        "RoiAlign": 16,
        "Softmax": 13,
        "BatchNormalization": 7,
        "Dropout": 7,
        **dict.fromkeys(("Max", "Mean", "Min", "Sum"), 8),
        **dict.fromkeys(("Add", "Div", "Mul", "Pow", "Sub"), 7),
        **dict.fromkeys(("And", "Equal", "Greater", "Less", "Or", "Xor"), 7),
    }
)
"""Operators that mean something else below an opset although a node of theirs would be valid there.

onnx's converter does not report them: it passes a Softmax to opset 12, where it computes something else.
"""


def _check_meanings(model: ModelProto, opset: int) -> None:
    for node in nodes_of(model.graph):
        if not node.domain and opset < MEANING_CHANGED.get(node.op_type, 0):
            raise UnsupportedModelError(
                f"the program cannot be exported at opset {opset}: {node.op_type} has another meaning there",
                help=f"export at opset {MEANING_CHANGED[node.op_type]} or above",
            )


def _stands_unchanged(node: NodeProto, opset: int, types: Mapping[str, str]) -> bool:
    """Whether a node is valid at an older opset as it is, and means the same there.

    Most versions of an operator only add element types, attributes or optional inputs.
    """
    if node.domain:
        return True
    now, then = (schema_at(node.op_type, version) for version in (PINNED_OPSET, opset))
    if now is None or then is None:
        return False
    if now.since_version == then.since_version:
        return True
    return (
        _is_prefix(node.input, now.inputs, then.inputs, types)
        and _is_prefix(node.output, now.outputs, then.outputs, types)
        and _same_attributes({item.name for item in node.attribute}, now, then)
    )


def _is_prefix(
    used: Sequence[str], now: Sequence[Any], then: Sequence[Any], types: Mapping[str, str]
) -> bool:
    """Whether the arguments in use are called the same in both versions, and the older one allows them."""
    count = len(used)
    if [item.name for item in now[:count]] != [item.name for item in then[:count]]:
        return False
    for position in range(max(count, len(then))):
        formal = then[min(position, len(then) - 1)]  # the last may be variadic
        name = used[position] if position < count else ""
        if not name and formal.option.name == "Single":
            return False
        if name in types and types[name] not in formal.types:
            return False
    return True


def _same_attributes(written: set[str], now: OpSchema, then: OpSchema) -> bool:
    """Whether the older version has the attributes that are written, and the same defaults for the others."""
    if not written <= then.attributes.keys():
        return False
    left_out = then.attributes.keys() - written
    if any(then.attributes[name].required for name in left_out):
        return False
    return all(
        now.attributes[name].default_value.SerializeToString()
        == then.attributes[name].default_value.SerializeToString()
        for name in left_out & now.attributes.keys()
    )


def _type_names(model: ModelProto) -> dict[str, str]:
    """Types of values as schemas write them, `tensor(float)`, where onnx has them."""
    from onnx import TensorProto, shape_inference

    try:
        model = shape_inference.infer_shapes(model)
    except onnx_errors():
        pass  # what is declared is still known
    elements: dict[str, int] = {}
    for graph in graphs_of(model.graph):
        elements |= {item.name: item.data_type for item in graph.initializer}
        declared = (*graph.input, *graph.output, *graph.value_info)
        elements |= {item.name: item.type.tensor_type.elem_type for item in declared}
    return {
        name: f"tensor({TensorProto.DataType.Name(element).lower()})"
        for name, element in elements.items()
        if name and element
    }


def _check_valid(model: ModelProto, opset: int) -> None:
    from onnx import checker

    try:
        checker.check_model(model, full_check=True)
    except onnx_errors() as error:
        raise _unexportable(opset, error) from None


def _unexportable(opset: int, error: Exception) -> UnsupportedModelError:
    return UnsupportedModelError(f"the program cannot be exported at opset {opset}: {error_essence(error)}")


def _declared(model: ModelProto, weights: dict[str, npt.NDArray[Any]]) -> ModelProto:
    """A copy in which large weights have no data but are inputs."""
    small = [item for item in model.graph.initializer if item.name not in weights]
    bare = type(model)()
    bare.CopyFrom(model)
    del bare.graph.initializer[:]
    bare.graph.initializer.extend(small)
    return declare_weights(bare, weights)


def _convert(model: ModelProto, opset: int, weights: dict[str, npt.NDArray[Any]]) -> ModelProto:
    from onnx import version_converter

    inputs = [item.name for item in model.graph.input]
    large = [item for item in model.graph.initializer if item.name in weights]
    try:
        converted = version_converter.convert_version(_declared(model, weights), opset)
    except onnx_errors() as error:
        raise _unexportable(opset, error) from None
    kept = [item for item in converted.graph.input if item.name in inputs]
    del converted.graph.input[:]
    converted.graph.input.extend(kept)
    converted.graph.initializer.extend(large)
    converted.ir_version = model.ir_version
    return converted
