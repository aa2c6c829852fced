"""What rules ask about an expression: which operator it calls, its shape, its value if that is constant."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

from intarsia.ir import ANY, Call, Constant, Dim, DType, Expr, Op, TensorType, with_fields
from intarsia.ir.attributes import Attrs

Array: TypeAlias = npt.NDArray[Any]


def operator_name(expr: Expr) -> str:
    """The name of the operator of ONNX's default domain that an expression calls, "" if it calls none."""
    match expr:
        case Call(op=Op(name=name, domain="")):
            return name
        case _:
            return ""


def dims_of(expr: Expr) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor; None where not even their number is known."""
    return expr.checked_type.shape if isinstance(expr.checked_type, TensorType) else None


def static_shape_of(expr: Expr) -> tuple[int, ...] | None:
    """The shape of a tensor where all of it is known."""
    type_ = expr.checked_type
    return type_.static_shape if isinstance(type_, TensorType) and type_.is_static else None


def dtype_of(expr: Expr) -> DType | None:
    """The element type of a tensor."""
    return expr.checked_type.dtype if isinstance(expr.checked_type, TensorType) else None


def constant_ints(expr: Expr) -> tuple[int, ...] | None:
    """The values of a constant of integers, such as axes; None for anything else."""
    match expr:
        case Constant(data=data) if data.dtype.kind in "iu":
            return tuple(int(item) for item in data.reshape(-1))
        case _:
            return None


def int_attr(attrs: Attrs, name: str, default: int) -> int:
    """An attribute that is an integer."""
    value = attrs.get(name, default)
    assert isinstance(value, int)
    return value


def ints_attr(attrs: Attrs, name: str) -> tuple[int, ...] | None:
    """An attribute that is a list of integers; None if it is not there."""
    value = attrs.get(name)
    if value is None:
        return None
    assert isinstance(value, tuple)
    return tuple(item for item in value if isinstance(item, int))


def keeps_shape(expr: Expr, shape: tuple[int, ...]) -> bool:
    """Whether broadcasting a tensor with one of `shape` certainly leaves its shape as it is."""
    dims = dims_of(expr)
    if dims is None:
        return shape == ()
    if len(shape) > len(dims):
        return False
    return all(size in (1, dim) for size, dim in zip(reversed(shape), reversed(dims), strict=False))


def has_same_shape(left: Expr, right: Expr) -> bool:
    """Whether two tensors certainly have the same shape."""
    dims = dims_of(left)
    return dims is not None and dims == dims_of(right) and ANY not in dims


def with_args(call: Call, *args: Expr) -> Call:
    """The call with other arguments that give a result of the same type."""
    return with_fields(call, args=args)
