"""Conditions on a single expression: its attributes, its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from intarsia.ir.attributes import Attrs
from intarsia.ir.dtype import DType
from intarsia.ir.expr import Call, Expr, Function
from intarsia.ir.types import SymbolicDim, TensorType, Type


@dataclass(frozen=True, slots=True)
class AttrsAre:
    """The call or function carries these attributes with these values; others do not matter.

    An attribute that is not written does not hold, even if its default is that value.
    """

    attrs: Attrs


@dataclass(frozen=True, slots=True)
class TypeIs:
    """The type is known, and this one."""

    type_: Type


@dataclass(frozen=True, slots=True)
class DTypeIs:
    """A tensor of one of these element types."""

    dtypes: tuple[DType, ...]


@dataclass(frozen=True, slots=True)
class ShapeIs:
    """A tensor of that rank, with that size in each dimension; None fits any, a string is a symbol's name."""

    shape: tuple[int | str | None, ...]


Constraint: TypeAlias = AttrsAre | TypeIs | DTypeIs | ShapeIs


def holds(constraint: Constraint, expr: Expr) -> bool:
    """Whether an expression meets a condition; an expression of unknown type meets no condition on types."""
    match constraint:
        case AttrsAre(attrs=attrs):
            own = expr.attrs if isinstance(expr, (Call, Function)) else Attrs()
            return all(name in own for name in attrs) and Attrs({name: own[name] for name in attrs}) == attrs
        case TypeIs(type_=type_):
            return expr.checked_type == type_
        case DTypeIs(dtypes=dtypes):
            return isinstance(expr.checked_type, TensorType) and expr.checked_type.dtype in dtypes
        case ShapeIs(shape=shape):
            return isinstance(expr.checked_type, TensorType) and _has_shape(expr.checked_type, shape)
        case _:
            assert_never(constraint)


def _has_shape(type_: TensorType, wanted: tuple[int | str | None, ...]) -> bool:
    if type_.shape is None or len(type_.shape) != len(wanted):
        return False
    plain = (dim.name if isinstance(dim, SymbolicDim) else dim for dim in type_.shape)
    return all(size is None or size == dim for dim, size in zip(plain, wanted, strict=True))
