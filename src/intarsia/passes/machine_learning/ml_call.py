"""What a rule is given: a call of an operator of ai.onnx.ml with static shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import AttrValue, Call, Constant, DType, Expr, Op, TensorType
from intarsia.op import call

Array = npt.NDArray[Any]


class NotDecomposedError(Exception):
    """A form that has no equivalent, or whose meaning engines do not agree about."""


@dataclass(frozen=True, slots=True, eq=False)
class MlCall:
    """One call.

    Attributes:
        call: Typed; every argument is a tensor of a static shape.
    """

    call: Call

    @property
    def name(self) -> str:
        """The operator."""
        assert isinstance(self.call.op, Op)
        return self.call.op.name

    def arg(self, position: int = 0) -> Expr:
        """An argument."""
        return self.call.args[position]

    def type_of(self, position: int = 0) -> TensorType:
        """The type of an argument."""
        type_ = self.arg(position).checked_type
        assert isinstance(type_, TensorType)
        return type_

    def shape(self, position: int = 0) -> tuple[int, ...]:
        """The shape of an argument."""
        return self.type_of(position).static_shape

    def floats(self, position: int = 0) -> Expr:
        """An argument of floats, integers as float32."""
        return (
            self.arg(position)
            if self.float_type(position) is self.type_of(position).dtype
            else cast(self.arg(position), DType.FLOAT32)
        )

    def float_type(self, position: int = 0) -> DType:
        """The type that an argument is computed in.

        Raises:
            NotDecomposedError: It is not made of numbers.
        """
        dtype = self.type_of(position).dtype
        if dtype is DType.STRING:
            raise self.refusal("strings")
        return dtype if dtype is DType.FLOAT64 else DType.FLOAT32

    def matrix(self) -> Expr:
        """The first argument as a matrix of floats.

        Raises:
            NotDecomposedError: It has another rank.
        """
        if len(self.shape()) != 2:
            raise self.refusal(f"{len(self.shape())} dimensions")
        return self.floats()

    def numbers(self, name: str, dtype: DType = DType.FLOAT32) -> Array:
        """An attribute that is a list of numbers, or a tensor; empty if it is not there."""
        value = self.call.attrs.get(name, ())
        data = value.data.reshape(-1) if isinstance(value, Constant) else value
        return np.asarray(data, dtype.numpy)

    def texts(self, name: str) -> tuple[str, ...]:
        """An attribute that is a list of strings; empty if it is not there."""
        value = self.call.attrs.get(name, ())
        assert isinstance(value, tuple)
        return tuple(text.decode() if isinstance(text, bytes) else str(text) for text in value)

    def text(self, name: str, default: str) -> str:
        """An attribute that is a string."""
        return str(self.call.attrs.get(name, default))

    def has(self, name: str) -> bool:
        """Whether an attribute is given, and no empty list."""
        return self.call.attrs.get(name, ()) != ()

    def value(self, name: str, default: AttrValue) -> AttrValue:
        """An attribute."""
        return self.call.attrs.get(name, default)

    def refusal(self, reason: str) -> NotDecomposedError:
        """The error for a form that stays as it is, in a few words: "strings"."""
        return NotDecomposedError(f"operator {str(self.call.op)!r} has no native kernel for {reason}")


def cast(value: Expr, dtype: DType) -> Expr:
    """The value in an element type; itself if it has that."""
    from intarsia.op.onnx_types import elem_type_of

    type_ = value.checked_type
    if isinstance(type_, TensorType) and type_.dtype is dtype:
        return value
    return call("Cast", value, to=elem_type_of(dtype))


def constant(array: Array, dtype: DType) -> Constant:
    """A constant of an element type."""
    data = np.ascontiguousarray(array, dtype.numpy).reshape(np.shape(array))
    data.flags.writeable = False
    return Constant(data)


def scalar(value: float, dtype: DType) -> Constant:
    """A constant without dimensions."""
    return constant(np.asarray(value), dtype)
