"""What operator predicates ask about a call."""

from __future__ import annotations

from intarsia.ir import AttrValue, Call, Constant, Dim, DType, TensorType, Tuple, TupleType, Type

_PACKED = frozenset({DType.INT4, DType.UINT4, DType.INT2, DType.UINT2, DType.FLOAT4_E2M1FN})


def call_types(call: Call) -> frozenset[DType]:
    """The known element types of arguments and results."""
    types = (call.checked_type, *(arg.checked_type for arg in call.args))
    return frozenset(dtype for type_ in types for dtype in _dtypes(type_))


def passes_packed_types(call: Call) -> bool:
    """Whether values of less than a byte would be passed to or from a function that holds this call only."""
    types = (call.checked_type, *(arg.checked_type for arg in call.args if not isinstance(arg, Constant)))
    return any(dtype in _PACKED for type_ in types for dtype in _dtypes(type_))


def attribute_is(call: Call, name: str, *values: AttrValue) -> bool:
    """Whether an attribute is written and has one of some values."""
    return call.attrs.get(name) in values


def is_computed(call: Call, position: int) -> bool:
    """Whether an argument is there and no constant."""
    return (
        len(call.args) > position
        and not isinstance(call.args[position], Constant)
        and is_given(call, position)
    )


def is_given(call: Call, position: int) -> bool:
    """Whether an argument is there."""
    if len(call.args) <= position:
        return False
    arg = call.args[position]
    return not (isinstance(arg, Tuple) and not arg.fields)


def known_shape(call: Call, position: int) -> tuple[Dim, ...] | None:
    """The shape of an argument, if its rank is known."""
    type_ = call.args[position].checked_type if len(call.args) > position else None
    return type_.shape if isinstance(type_, TensorType) else None


def _dtypes(type_: Type | None) -> tuple[DType, ...]:
    match type_:
        case TensorType(dtype=dtype):
            return (dtype,)
        case TupleType(fields=fields):
            return tuple(dtype for item in fields for dtype in _dtypes(item))
        case _:
            return ()
