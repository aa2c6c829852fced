"""A node of a contributed operator: what a definition reads of it, and the calls that it emits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import ABSENT, ANY, AttrValue, Constant, DType, Expr, Span, SymbolicDim, TensorType, Var
from intarsia.op import absent, call, tuple_get
from intarsia.op.known_value import known_value
from intarsia.op.onnx_types import elem_type_of
from intarsia.support.errors import InvalidModelError

Array = npt.NDArray[Any]


class NoDefinitionError(Exception):
    """A form of a contributed operator that ONNX's operators cannot express; the message says which."""


class ImpliedSizeError(Exception):
    """A symbolic dimension of the model's inputs can only have one size, because an operator demands it.

    Attributes:
        symbol: Name of the dimension.
        size: The size.
    """

    def __init__(self, symbol: str, size: int) -> None:
        """Take the dimension and its size."""
        super().__init__(f"the dimension {symbol} is {size}")
        self.symbol, self.size = symbol, size


@dataclass(frozen=True, slots=True)
class ContribNode:
    """A node with typed inputs.

    Attributes:
        name: Operator type.
        args: Its inputs; an empty tuple stands for an absent one.
        attributes: Its attributes, defaults filled in.
        outputs: For each output up to the last one that is used, whether it is used.
        span: Span of the ONNX node.
    """

    name: str
    args: tuple[Expr, ...]
    attributes: Mapping[str, Any]
    outputs: tuple[bool, ...]
    span: Span

    def has(self, position: int) -> bool:
        """Whether an optional input is given."""
        return position < len(self.args) and self.args[position].checked_type != ABSENT

    def input(self, position: int) -> Expr:
        """A required input.

        Raises:
            InvalidModelError: It is absent.
        """
        if not self.has(position):
            raise InvalidModelError(f"operator {self.name!r} lacks its input {position}, which is required")
        return self.args[position]

    def optional(self, position: int) -> Expr | None:
        """An optional input; None where it is absent."""
        return self.args[position] if self.has(position) else None

    def is_used(self, position: int) -> bool:
        """Whether an output is used."""
        return position < len(self.outputs) and self.outputs[position]

    def integer(self, name: str) -> int:
        """An attribute that is an integer."""
        return int(self.attributes[name])

    def number(self, name: str) -> float:
        """An attribute that is a number, exactly as the float32 that ONNX stores."""
        return float(np.float32(self.attributes[name]))

    def text(self, name: str) -> str:
        """An attribute that is a text."""
        return str(self.attributes[name])

    def op(self, name: str, *args: Expr | None, **attrs: AttrValue) -> Expr:
        """Call an operator of ONNX; None stands for an absent input."""
        given = [absent() if arg is None else arg for arg in args]
        return call(name, *given, span=self.span, **attrs)  # type: ignore[arg-type]  # no attribute is named so

    def ops(self, name: str, outputs: int, *args: Expr | None, **attrs: AttrValue) -> tuple[Expr, ...]:
        """Call an operator of ONNX with several outputs."""
        given = [absent() if arg is None else arg for arg in args]
        value = call(name, *given, outputs=outputs, span=self.span, **attrs)  # type: ignore[arg-type]  # as above
        return tuple(tuple_get(value, position) for position in range(outputs))

    def constant(self, array: Array) -> Constant:
        """Return a constant of an array, made read-only."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        array.flags.writeable = False
        return Constant(array, span=self.span)

    def ints(self, *values: int) -> Constant:
        """A constant list of int64: a shape, axes."""
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float, like: Expr) -> Constant:
        """A constant number of the element type of another value."""
        return self.constant(np.array(value, dtype_of(like).numpy))

    def reshape(self, x: Expr, *shape: int) -> Expr:
        """A value of another shape; 0 keeps the size of that axis, -1 is computed."""
        return self.op("Reshape", x, self.ints(*shape))

    def transpose(self, x: Expr, *perm: int) -> Expr:
        """A value with its axes permuted."""
        return self.op("Transpose", x, perm=perm)

    def swapped(self, x: Expr) -> Expr:
        """A value with its last two axes exchanged."""
        rank = self.rank(x)
        return self.transpose(x, *range(rank - 2), rank - 1, rank - 2)

    def cast(self, x: Expr, dtype: DType) -> Expr:
        """A value with another element type; the same if it has it."""
        return x if dtype_of(x) is dtype else self.op("Cast", x, to=elem_type_of(dtype))

    def size(self, x: Expr, axis: int) -> Expr:
        """The size of an axis as an int64 tensor of shape (1,)."""
        length = self.static(x, axis)
        if length is not None:
            return self.ints(length)
        axis = axis % self.rank(x)
        return self.op("Shape", x, start=axis, end=axis + 1)

    def static(self, x: Expr, axis: int) -> int | None:
        """The size of an axis if it is known."""
        shape = shape_of(x)
        length = None if shape is None else shape[axis]
        return length if isinstance(length, int) else None

    def demand_size(self, x: Expr, axis: int, size: int | None) -> None:
        """Have the model imported again where the axis of an input is a symbol that can only be this size.

        Raises:
            ImpliedSizeError: It is such a symbol.
        """
        dim = (shape_of(x) or {axis: ANY})[axis]
        if isinstance(x, Var) and isinstance(dim, SymbolicDim) and dim != ANY and size is not None:
            raise ImpliedSizeError(dim.name, size)

    def rank(self, x: Expr) -> int:
        """The number of axes.

        Raises:
            NoDefinitionError: It is not known.
        """
        shape = shape_of(x)
        if shape is None:
            raise NoDefinitionError("the rank of an input is not known")
        return len(shape)

    def concat(self, parts: Sequence[Expr], axis: int) -> Expr:
        """Values one behind the other."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def slice(self, x: Expr, axis: int, start: Expr, end: Expr) -> Expr:
        """The part of a value from start to end, int64 tensors of shape (1,), along an axis."""
        return self.op("Slice", x, start, end, self.ints(axis))

    def split(self, x: Expr, axis: int, sizes: Sequence[int]) -> tuple[Expr, ...]:
        """Parts of the given sizes along an axis."""
        return self.ops("Split", len(sizes), x, self.ints(*sizes), axis=axis)


def shape_of(x: Expr) -> tuple[Any, ...] | None:
    """The shape of a tensor as far as it is known; None if its rank is not."""
    return x.checked_type.shape if isinstance(x.checked_type, TensorType) else None


def dtype_of(x: Expr) -> DType:
    """The element type of a tensor.

    Raises:
        NoDefinitionError: It is not known.
    """
    if not isinstance(x.checked_type, TensorType):
        raise NoDefinitionError("the type of an input is not known")
    return x.checked_type.dtype


def array_of(x: Expr) -> Array | None:
    """The value of a constant, or of a small value that is known; None for others."""
    return x.data if isinstance(x, Constant) else known_value(x)
