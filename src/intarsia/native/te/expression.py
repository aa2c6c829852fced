"""Scalar expressions that read tensors: the scalars of loop functions with Python's operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Intrinsic, Literal, Scalar
from intarsia.ir.scalar_types import scalar_complaint, scalar_dtype
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.native.te.tensor import Tensor


class Counted(Protocol):
    """An axis, which may be used as its value."""

    @property
    def expression(self) -> Expression:
        """Its value."""


Operand: TypeAlias = "Expression | Counted | int | float | bool"
"""An operand of an operator: Python's numbers get the type of the other operand."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A scalar, and the tensors that it reads.

    Operators are Python's, but for equality (`te.equal`), `and`, `or` and `not` (`te.logical_and` ...).
    `//` and `%` are for integers and round towards minus infinity; `/` is for floats.

    Attributes:
        scalar: Scalar over the loop variables of iterators and loads of the tensors' buffers.
        tensors: Tensors that the scalar reads, each once, in the order of first reading.
    """

    scalar: Scalar
    tensors: tuple[Tensor, ...] = ()

    @property
    def dtype(self) -> DType:
        """The element type of its value."""
        element_type = scalar_dtype(self.scalar)
        assert element_type is not None, "every operand was given"
        return element_type

    def astype(self, dtype: DType) -> Expression:
        """Return the value in another element type, as ONNX's Cast; itself if it has the type."""
        return self if self.dtype is dtype else Expression(Cast(self.scalar, dtype), self.tensors)

    def __add__(self, other: Operand) -> Expression:
        return arith(ArithOp.ADD, self, other)

    def __radd__(self, other: Operand) -> Expression:
        return arith(ArithOp.ADD, other, self)

    def __sub__(self, other: Operand) -> Expression:
        return arith(ArithOp.SUB, self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return arith(ArithOp.SUB, other, self)

    def __mul__(self, other: Operand) -> Expression:
        return arith(ArithOp.MUL, self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return arith(ArithOp.MUL, other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return arith(ArithOp.DIV, self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return arith(ArithOp.DIV, other, self)

    def __floordiv__(self, other: Operand) -> Expression:
        return arith(ArithOp.FLOOR_DIV, self, other)

    def __rfloordiv__(self, other: Operand) -> Expression:
        return arith(ArithOp.FLOOR_DIV, other, self)

    def __mod__(self, other: Operand) -> Expression:
        return arith(ArithOp.FLOOR_MOD, self, other)

    def __rmod__(self, other: Operand) -> Expression:
        return arith(ArithOp.FLOOR_MOD, other, self)

    def __neg__(self) -> Expression:
        return arith(ArithOp.SUB, 0, self) if self.dtype.is_integer else arith(ArithOp.MUL, self, -1.0)

    def __lt__(self, other: Operand) -> Expression:
        return arith(ArithOp.LT, self, other)

    def __le__(self, other: Operand) -> Expression:
        return arith(ArithOp.LE, self, other)

    def __gt__(self, other: Operand) -> Expression:
        return arith(ArithOp.LT, other, self)

    def __ge__(self, other: Operand) -> Expression:
        return arith(ArithOp.LE, other, self)

    def __bool__(self) -> bool:
        raise UsageError(
            "a tensor expression has no truth value: use te.select, te.if_then_else, te.logical_and"
        )


def arith(op: ArithOp, *operands: Operand) -> Expression:
    """Return an operator applied to operands of one type.

    Raises:
        UsageError: The types do not fit, or no operand is an expression.
    """
    return with_tensors(Arith(op, ()), operands)


def literal(value: float | bool, dtype: DType) -> Expression:
    """Return a number of a type as an expression.

    Raises:
        UsageError: The type has no such number.
    """
    number = Literal(value, dtype)
    if not number.is_in_type:
        raise UsageError(f"{value} is no {dtype.value}")
    return Expression(number)


def with_tensors(scalar: Scalar, operands: tuple[Operand, ...]) -> Expression:
    """Return an Arith or Intrinsic with other operands, which reads the tensors that they read.

    Raises:
        UsageError: The types do not fit, or no operand is an expression.
    """
    expressions = typed(operands)
    scalars = tuple(expression.scalar for expression in expressions)
    complaint = scalar_complaint(scalar, [expression.dtype for expression in expressions])
    if complaint is not None:
        raise UsageError(f"tensor expression: {complaint}")
    match scalar:
        case Arith(op=op):
            scalar = Arith(op, scalars)
        case Intrinsic(name=name, dtype=dtype):
            scalar = Intrinsic(name, scalars, dtype)
    return Expression(
        scalar, tuple(dict.fromkeys(tensor for expression in expressions for tensor in expression.tensors))
    )


def typed(operands: tuple[Operand, ...]) -> tuple[Expression, ...]:
    """Return operands as expressions; numbers get the type of the last expression among the operands.

    Raises:
        UsageError: No operand is an expression, or the type has no such number.
    """
    given: list[Any] = [getattr(operand, "expression", operand) for operand in operands]
    types = [operand.dtype for operand in given if isinstance(operand, Expression)]
    if not types:
        raise UsageError("a tensor expression needs an operand that is no plain number: use te.const")
    return tuple(
        operand if isinstance(operand, Expression) else literal(operand, types[-1]) for operand in given
    )
