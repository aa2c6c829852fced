"""Types, attributes and tensors of the language in ONNX's protobuf messages, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import numpy.typing as npt

from intarsia.ir import (
    ANY,
    Attrs,
    AttrValue,
    Constant,
    DType,
    FuncType,
    OptionalType,
    SequenceType,
    SymbolicDim,
    TensorType,
    TupleType,
    Type,
)
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

if TYPE_CHECKING:
    from onnx import AttributeProto, TensorProto, TypeProto

_ONNX_NAMES = {
    DType.FLOAT64: "DOUBLE",
    DType.FLOAT32: "FLOAT",
    DType.FLOAT8_E4M3FN: "FLOAT8E4M3FN",
    DType.FLOAT8_E4M3FNUZ: "FLOAT8E4M3FNUZ",
    DType.FLOAT8_E5M2: "FLOAT8E5M2",
    DType.FLOAT8_E5M2FNUZ: "FLOAT8E5M2FNUZ",
    DType.FLOAT8_E8M0FNU: "FLOAT8E8M0",
    DType.FLOAT4_E2M1FN: "FLOAT4E2M1",
}


@cache
def _elem_types() -> dict[DType, int]:
    from onnx import TensorProto

    values = dict(TensorProto.DataType.items())
    return {dtype: values[_ONNX_NAMES.get(dtype, dtype.value.upper())] for dtype in DType}


@cache
def _dtypes() -> dict[int, DType]:
    return {number: dtype for dtype, number in _elem_types().items()}


def elem_type_of(dtype: DType) -> int:
    """ONNX's number of an element type."""
    return _elem_types()[dtype]


def tensor_type_text(dtype: DType) -> str:
    """Return how schemas and onnxruntime write the type of a tensor: "tensor(float)"."""
    from onnx import TensorProto

    return f"tensor({TensorProto.DataType.Name(elem_type_of(dtype)).lower()})"


def dtype_of_elem(elem_type: int) -> DType:
    """Element type of ONNX's number.

    Raises:
        InvalidModelError: There is no such number.
    """
    try:
        return _dtypes()[elem_type]
    except KeyError:
        raise InvalidModelError(f"unknown ONNX element type {elem_type}") from None


def type_from_proto(proto: TypeProto) -> Type | None:
    """The language's type of an ONNX type; None where the message says nothing.

    Raises:
        UnsupportedModelError: A map, sparse or opaque type.
    """
    kind = proto.WhichOneof("value")
    match kind:
        case None:
            return None
        case "tensor_type":
            tensor = proto.tensor_type
            if not tensor.elem_type:
                return None
            shape = tuple(map(_dim_from_proto, tensor.shape.dim)) if tensor.HasField("shape") else None
            return TensorType(shape, dtype_of_elem(tensor.elem_type))
        case "sequence_type" | "optional_type":
            element = type_from_proto(getattr(proto, kind).elem_type)
            if element is None:
                return None
            return SequenceType(element) if kind == "sequence_type" else OptionalType(element)
        case _:
            raise UnsupportedModelError(
                f"ONNX values of {kind.replace('_', ' ')} are not supported",
                help="give the model tensors: DictVectorizer and CastMap stay outside"
                if kind == "map_type"
                else "",
            )


def _dim_from_proto(dim: Any) -> int | SymbolicDim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:  # onnx infers -1 in dead branches
        return int(dim.dim_value)
    return SymbolicDim(dim.dim_param) if dim.dim_param else ANY


def type_to_proto(type_: Type) -> TypeProto:
    """The ONNX type of a tensor, sequence or optional type.

    Raises:
        UnsupportedModelError: Tuples and functions have no ONNX type.
    """
    from onnx import TypeProto

    proto = TypeProto()
    match type_:
        case TensorType():
            proto.tensor_type.elem_type = elem_type_of(type_.dtype)
            if type_.shape is not None:
                proto.tensor_type.shape.SetInParent()
                for dim in type_.shape:
                    entry = proto.tensor_type.shape.dim.add()
                    if isinstance(dim, SymbolicDim):
                        if dim != ANY:
                            entry.dim_param = dim.name
                    else:
                        entry.dim_value = dim
        case SequenceType():
            proto.sequence_type.elem_type.CopyFrom(type_to_proto(type_.element))
        case OptionalType():
            proto.optional_type.elem_type.CopyFrom(type_to_proto(type_.element))
        case TupleType() | FuncType():
            raise UnsupportedModelError(f"ONNX has no type for {type_}")
        case _:
            assert_never(type_)
    return proto


def tensor_to_proto(array: npt.NDArray[Any], name: str = "") -> TensorProto:
    """An ONNX tensor with a copy of the array's data."""
    from onnx import TensorProto, numpy_helper

    dtype = DType.of(array)
    if dtype is DType.STRING:
        texts = (item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1))
        return TensorProto(name=name, data_type=TensorProto.STRING, dims=array.shape, string_data=list(texts))
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def tensor_from_proto(proto: TensorProto) -> npt.NDArray[Any]:
    """The array of an ONNX tensor whose data is inline; strings become an object array of str.

    Raises:
        InvalidModelError: The data does not fit the element type and shape.
    """
    from onnx import numpy_helper

    dtype = dtype_of_elem(proto.data_type)
    if min(proto.dims, default=0) < 0:
        raise InvalidModelError(f"tensor {proto.name!r} has the shape {tuple(proto.dims)}")
    try:
        if dtype is DType.STRING:
            texts = [item.decode() for item in proto.string_data]
            return np.array(texts, dtype=object).reshape(tuple(proto.dims))
        return np.asarray(numpy_helper.to_array(proto))
    except (ValueError, TypeError, OverflowError) as error:  # UnicodeDecodeError is a ValueError
        raise InvalidModelError(
            f"tensor {proto.name!r} is no {dtype} array of shape {tuple(proto.dims)}: {error}"
        ) from None


def attributes_from_protos(protos: list[AttributeProto]) -> Attrs:
    """The attributes of a node, but for its graphs, which become functions or branches."""
    return Attrs({proto.name: _attribute_value(proto) for proto in protos if not proto.HasField("g")})


def _attribute_value(proto: AttributeProto) -> AttrValue:
    from onnx import AttributeProto

    if proto.ref_attr_name:
        raise InvalidModelError(
            f"attribute {proto.name!r} refers to {proto.ref_attr_name!r}, an attribute of a function, "
            "but its node is in none"
        )
    kind = AttributeProto.AttributeType.Name(proto.type)
    value = _READERS[kind](proto) if kind in _READERS else None
    if value is None:
        raise UnsupportedModelError(f"attribute {proto.name!r} has the kind {kind}, which is not supported")
    return value


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return bytes(data)


def _constant(tensor: TensorProto) -> Constant:
    array = tensor_from_proto(tensor)
    array.flags.writeable = False
    return Constant(array)


_READERS: Mapping[str, Callable[[AttributeProto], AttrValue | None]] = MappingProxyType(
    {
        "FLOAT": lambda proto: float(proto.f),
        "INT": lambda proto: int(proto.i),
        "STRING": lambda proto: _text(proto.s),
        "TENSOR": lambda proto: _constant(proto.t),
        "FLOATS": lambda proto: tuple(map(float, proto.floats)),
        "INTS": lambda proto: tuple(map(int, proto.ints)),
        "STRINGS": lambda proto: tuple(map(_text, proto.strings)),
        "TENSORS": lambda proto: tuple(map(_constant, proto.tensors)),
        "TYPE_PROTO": lambda proto: type_from_proto(proto.tp),
    }
)
"""How the value of an attribute is read, by the name of its kind."""


def densify(dims: Sequence[int], values: npt.NDArray[Any], indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The dense array of an ONNX sparse tensor.

    Args:
        dims: Shape of the result.
        values: The elements that are not zero, of shape (n,).
        indices: Positions of the values: linear, of shape (n,), or by axis, of shape (n, rank).

    Raises:
        InvalidModelError: Indices that do not fit, or a shape too large for the memory.
    """
    try:
        dense = np.zeros(tuple(dims), dtype=values.dtype)
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (IndexError, ValueError, MemoryError) as error:
        raise InvalidModelError(f"a sparse tensor of shape {tuple(dims)} cannot be read: {error}") from None
    return dense
