"""Indices and loops of kernels that are written directly, without a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Arith, ArithOp, For, ForKind, Literal, LoopVar, Scalar, Statement


def for_each(shape: Sequence[int], body: Callable[[tuple[Scalar, ...]], Statement]) -> Statement:
    """Return a statement for each element of a box, in loops that are written out."""
    counters = [LoopVar(f"at{number}") for number in range(len(shape))]
    statement = body(tuple(counters))
    for counter, extent in reversed(list(zip(counters, shape, strict=True))):
        statement = For(counter, extent, statement, ForKind.UNROLLED)
    return statement


def unflattened(number: Scalar, shape: Sequence[int]) -> tuple[Scalar, ...]:
    """Return the indices of an element of a box by its number."""
    indices: list[Scalar] = []
    for extent in reversed(shape):
        indices.insert(0, mod(number, extent))
        number = div(number, extent)
    return tuple(indices)


def number(value: int) -> Literal:
    """Return an index."""
    return Literal(value, DType.INT64)


def plus(left: Scalar, right: Scalar) -> Scalar:
    """Return a sum."""
    return Arith(ArithOp.ADD, (left, right))


def times(left: Scalar, factor: int) -> Scalar:
    """Return a multiple."""
    return Arith(ArithOp.MUL, (left, number(factor)))


def div(left: Scalar, divisor: int) -> Scalar:
    """Return a quotient, rounded down."""
    return Arith(ArithOp.FLOOR_DIV, (left, number(divisor)))


def mod(left: Scalar, divisor: int) -> Scalar:
    """Return a remainder."""
    return Arith(ArithOp.FLOOR_MOD, (left, number(divisor)))


def less(left: Scalar, right: int) -> Scalar:
    """Return whether an index is below a limit."""
    return Arith(ArithOp.LT, (left, number(right)))
