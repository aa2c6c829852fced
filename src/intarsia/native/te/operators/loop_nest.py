"""Loop statements for operators that are no function of one element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.ir.prim_func import Buffer, For, ForKind, IfThenElse, Load, LoopVar, Statement, Store
from intarsia.native.te.compute import extern
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.index_arithmetic import Indices
from intarsia.native.te.tensor import Tensor


def loop_nest(
    prefix: str, shape: Sequence[int], body: Callable[[Indices], Statement], *, in_lanes: bool = False
) -> Statement:
    """Build serial loops over a shape, outermost first.

    Args:
        prefix: Prefix of the names of the variables; nested nests need different ones.
        shape: Extents of the loops; () is the body alone.
        body: Function that is called once with the variables.
        in_lanes: Whether the innermost loop is vectorised: no iteration reads what another one writes.
    """
    variables = [LoopVar(f"{prefix}{position}") for position in range(len(shape))]
    statement = body(tuple(Expression(variable) for variable in variables))
    kind = ForKind.VECTORIZED if in_lanes else ForKind.SERIAL
    for variable, extent in zip(reversed(variables), reversed(shape), strict=True):
        statement, kind = For(variable, extent, statement, kind), ForKind.SERIAL
    return statement


def unrolled_nest(prefix: str, shape: Sequence[int], body: Callable[[Indices], Statement]) -> Statement:
    """Build loops over a small shape whose buffers may be registers: unrolled ones, the innermost vectorised.

    Args:
        prefix: Prefix of the names of the variables; nested nests need different ones.
        shape: Extents of the loops; () is the body alone.
        body: Function that is called once with the variables. No iteration reads what another one writes.
    """
    variables = [LoopVar(f"{prefix}{position}") for position in range(len(shape))]
    statement = body(tuple(Expression(variable) for variable in variables))
    kind = ForKind.VECTORIZED
    for variable, extent in zip(reversed(variables), reversed(shape), strict=True):
        statement, kind = For(variable, extent, statement, kind), ForKind.UNROLLED
    return statement


def store(buffer: Buffer, indices: Sequence[Expression], value: Expression) -> Store:
    """Build `buffer[indices] = value`."""
    return Store(buffer, tuple(index.scalar for index in indices), value.scalar)


def load(buffer: Buffer, indices: Sequence[Expression]) -> Expression:
    """Return an element of a buffer that the statement itself writes."""
    return Expression(Load(buffer, tuple(index.scalar for index in indices)))


def when(condition: Expression, then: Statement, otherwise: Statement | None = None) -> IfThenElse:
    """Build a guard around a statement."""
    return IfThenElse(condition.scalar, then, otherwise)


def build_copy(buffer: Buffer, source: Tensor) -> Statement:
    """Build a copy of a tensor into a buffer of its shape."""
    return loop_nest("c", source.shape, lambda i: store(buffer, i, source[i]))


def declare_written(buffer: Buffer, inputs: Sequence[Tensor], body: Statement) -> Tensor:
    """Declare the tensor that a statement writes into a buffer."""
    (tensor,) = extern([buffer], inputs, body, buffer.name)
    return tensor
