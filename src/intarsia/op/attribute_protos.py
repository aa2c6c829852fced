"""Attributes of the language in ONNX's protobuf messages; `onnx_types` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.ir import (
    AttrValue,
    Constant,
    FuncType,
    OptionalType,
    SequenceType,
    TensorType,
    TupleType,
)
from intarsia.op.onnx_types import tensor_to_proto, type_to_proto
from intarsia.op.opset import schema_of

if TYPE_CHECKING:
    from onnx import AttributeProto


def attribute_to_proto(name: str, value: AttrValue, operator: str, domain: str) -> AttributeProto:
    """One attribute as ONNX writes it; the schema decides the kind of an empty list."""
    from onnx import helper

    if isinstance(value, Constant):
        return helper.make_attribute(name, tensor_to_proto(value.data))
    if isinstance(value, (TensorType, TupleType, FuncType, SequenceType, OptionalType)):
        return helper.make_attribute(name, type_to_proto(value))
    if value == ():
        return helper.make_attribute(name, [], attr_type=_kind_of_empty(name, operator, domain))
    if isinstance(value, tuple):
        items = [tensor_to_proto(item.data) if isinstance(item, Constant) else item for item in value]
        return helper.make_attribute(name, items)
    return helper.make_attribute(name, value)


def _kind_of_empty(name: str, operator: str, domain: str) -> int:
    from onnx import AttributeProto

    kinds = (AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS, AttributeProto.TENSORS)
    declared = schema_of(operator, domain).attributes.get(name)
    kind = declared.type.value if declared else AttributeProto.INTS
    return int(kind if kind in kinds else AttributeProto.INTS)
