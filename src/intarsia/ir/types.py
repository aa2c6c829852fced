"""Types of the language: tensors with symbolic dimensions, tuples, functions, and ONNX's containers.

    Type = TensorType(shape: tuple[Dim, ...] | None, dtype) | TupleType | FuncType
         | SequenceType | OptionalType
    Dim  = int | SymbolicDim

Types are values: compared and hashed by content. `str(type)` is the text form of the program.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.ir.dtype import DType

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


@dataclass(frozen=True, slots=True)
class SymbolicDim:
    """A dimension known by name only; equal names are the same size. `ANY` is unknown without a name."""

    name: str

    def __str__(self) -> str:
        if self.name == "?" or _PLAIN_NAME.match(self.name):
            return self.name
        return json.dumps(self.name)


ANY = SymbolicDim("?")
Dim: TypeAlias = int | SymbolicDim


@dataclass(frozen=True, slots=True)
class TensorType:
    """An n-dimensional array.

    Attributes:
        shape: One entry per dimension, outermost first; () is a scalar; None where even the rank is unknown.
        dtype: Element type; a plain string such as "float32" is accepted.
    """

    shape: tuple[Dim, ...] | None
    dtype: DType

    def __post_init__(self) -> None:
        """Accept any sequence as shape and any spelling of the element type."""
        if type(self.dtype) is not DType:
            object.__setattr__(self, "dtype", DType(self.dtype))
        if self.shape is not None and type(self.shape) is not tuple:
            object.__setattr__(self, "shape", tuple(self.shape))

    @classmethod
    def of(cls, array: npt.NDArray[np.generic]) -> TensorType:
        """The type of a concrete array."""
        return cls(array.shape, DType.of(array))

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a number."""
        return self.shape is not None and all(isinstance(dim, int) for dim in self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as numbers.

        Raises:
            ValueError: Some dimension is symbolic.
        """
        if self.shape is None or not self.is_static:
            raise ValueError(f"{self} has no static shape")
        return tuple(dim for dim in self.shape if isinstance(dim, int))

    def __str__(self) -> str:
        if self.shape is None:
            return f"Tensor[?, {self.dtype.value}]"
        return f"Tensor[({_tuple_text(self.shape)}), {self.dtype.value}]"


@dataclass(frozen=True, slots=True)
class TupleType:
    """Several values side by side; `TupleType(())` is the type of an absent value."""

    fields: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({_tuple_text(self.fields)})"


@dataclass(frozen=True, slots=True)
class FuncType:
    """A function from parameter types to a result type (None where not inferred yet)."""

    params: tuple[Type | None, ...]
    result: Type | None

    def __str__(self) -> str:
        params = ", ".join("_" if param is None else str(param) for param in self.params)
        return f"fn ({params}) -> {'_' if self.result is None else self.result}"


@dataclass(frozen=True, slots=True)
class SequenceType:
    """ONNX's homogeneous list of values; only the reference toolchain runs it."""

    element: Type

    def __str__(self) -> str:
        return f"Sequence[{self.element}]"


@dataclass(frozen=True, slots=True)
class OptionalType:
    """ONNX's value that may be absent; only the reference toolchain runs it."""

    element: Type

    def __str__(self) -> str:
        return f"Optional[{self.element}]"


Type: TypeAlias = TensorType | TupleType | FuncType | SequenceType | OptionalType

ABSENT = TupleType(())


def _tuple_text(items: tuple[object, ...]) -> str:
    return f"{items[0]}," if len(items) == 1 else ", ".join(map(str, items))


def is_compatible(actual: Type | None, expected: Type | None) -> bool:
    """Whether a value of type `actual` may be used where `expected` is required.

    Unknown types, ranks and symbolic dimensions fit anything; numbers, element types and ranks must agree.
    """
    match actual, expected:
        case (None, _) | (_, None):
            return True
        case TensorType(), TensorType():
            return actual.dtype == expected.dtype and _shapes_fit(actual.shape, expected.shape)
        case TupleType(), TupleType():
            return len(actual.fields) == len(expected.fields) and all(
                map(is_compatible, actual.fields, expected.fields)
            )
        case FuncType(), FuncType():
            return (
                len(actual.params) == len(expected.params)
                and all(map(is_compatible, actual.params, expected.params))
                and is_compatible(actual.result, expected.result)
            )
        case SequenceType(), SequenceType():
            return is_compatible(actual.element, expected.element)
        case OptionalType(), OptionalType():
            return is_compatible(actual.element, expected.element)
        case _:
            return False


def _shapes_fit(left: tuple[Dim, ...] | None, right: tuple[Dim, ...] | None) -> bool:
    if left is None or right is None:
        return True
    return len(left) == len(right) and all(
        a == b or isinstance(a, SymbolicDim) or isinstance(b, SymbolicDim)
        for a, b in zip(left, right, strict=True)
    )


def join_types(left: Type | None, right: Type | None) -> Type | None:
    """The most precise type that covers both (results of two branches), or None if there is none."""
    if left == right:
        return left
    match left, right:
        case TensorType(), TensorType() if left.dtype == right.dtype:
            if left.shape is None or right.shape is None or len(left.shape) != len(right.shape):
                return TensorType(None, left.dtype)
            dims = (a if a == b else ANY for a, b in zip(left.shape, right.shape, strict=True))
            return TensorType(tuple(dims), left.dtype)
        case TupleType(), TupleType() if len(left.fields) == len(right.fields):
            fields = tuple(map(join_types, left.fields, right.fields))
            return TupleType(tuple(f for f in fields if f is not None)) if None not in fields else None
        case SequenceType(), SequenceType():
            element = join_types(left.element, right.element)
            return None if element is None else SequenceType(element)
        case OptionalType(), OptionalType():
            element = join_types(left.element, right.element)
            return None if element is None else OptionalType(element)
        case _:
            return None
