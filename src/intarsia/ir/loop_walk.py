"""Walking loop functions without recursion, in the order of their text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from operator import is_
from typing import Final, NamedTuple, assert_never

from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    AsyncCopy,
    Block,
    Buffer,
    Cast,
    For,
    IfThenElse,
    Intrinsic,
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    Mma,
    Scalar,
    Statement,
    Store,
)

LEAVES: Final = (LoopVar, Literal)
"""Scalars without operands."""


class Event(Enum):
    """What a walk meets."""

    ENTER = auto()
    ELSE = auto()
    LEAVE = auto()


class Visit(NamedTuple):
    """A step of a walk.

    Attributes:
        event: Whether the statement begins, ends, or its second branch begins. A Store or a
            KernelStatement begins only.
        statement: The statement, never a Block.
        number: Number of statements that begin before it; it distinguishes equal statements.
        depth: Number of enclosing statements.
    """

    event: Event
    statement: Statement
    number: int
    depth: int


def walk(body: Statement) -> Iterator[Visit]:
    """Every statement from its begin to its end, outermost first; blocks are looked through."""
    count = 0
    stack: list[tuple[Statement, int] | Visit] = [(body, 0)]
    while stack:
        item = stack.pop()
        if isinstance(item, Visit):
            yield item
            continue
        statement, depth = item
        if isinstance(statement, Block):
            stack.extend((inner, depth) for inner in reversed(statement.statements))
            continue
        yield Visit(Event.ENTER, statement, count, depth)
        match statement:
            case Store() | KernelStatement():
                pass
            case For(body=inside) | Allocate(body=inside):
                stack += [Visit(Event.LEAVE, statement, count, depth), (inside, depth + 1)]
            case IfThenElse():
                stack.append(Visit(Event.LEAVE, statement, count, depth))
                if statement.otherwise is not None:
                    stack += [(statement.otherwise, depth + 1), Visit(Event.ELSE, statement, count, depth)]
                stack.append((statement.then, depth + 1))
            case _:
                assert_never(statement)
        count += 1


def scalars(statement: Statement) -> tuple[Scalar, ...]:
    """The scalars of a statement itself, not of those inside it, in evaluation order."""
    match statement:
        case Store():
            return (*statement.indices, statement.value)
        case IfThenElse():
            return (statement.cond,)
        case For():
            return () if statement.count is None else (statement.count,)
        case AsyncCopy():
            valid = () if statement.valid is None else (statement.valid,)
            return (*statement.target.indices, statement.source, *valid)
        case Mma():
            return (statement.sums, statement.left, statement.right)
        case Block() | Allocate() | KernelStatement():
            return ()
        case _:
            assert_never(statement)


def written_elements(statement: KernelStatement) -> tuple[Load, ...]:
    """The elements of buffers that a statement of a GPU thread writes: the first one of each row."""
    match statement:
        case AsyncCopy():
            return (statement.target,)
        case Mma():
            return (statement.sums,)
        case _:
            return ()


def operands(scalar: Scalar) -> tuple[Scalar, ...]:
    """The scalars directly inside a scalar, in evaluation order."""
    if isinstance(scalar, LEAVES):  # most scalars; a match, or a union made for each call, is much slower
        return ()
    if isinstance(scalar, Arith):
        return scalar.operands
    if isinstance(scalar, Load):
        return scalar.indices
    if isinstance(scalar, Cast):
        return (scalar.value,)
    if isinstance(scalar, Intrinsic):
        return scalar.args
    assert_never(scalar)


def with_operands(scalar: Scalar, new: Sequence[Scalar]) -> Scalar:
    """Return the same operator over other operands; the same object if they are the same objects."""
    before = operands(scalar)
    is_same = len(before) == len(new) and all(map(is_, before, new))  # in C: it is called for most scalars
    return scalar if is_same else copy_over(scalar, new)


def copy_over(scalar: Scalar, new: Sequence[Scalar]) -> Scalar:
    """Return a new scalar of the same operator over operands, also if they are its own."""
    match scalar:
        case Arith():
            return Arith(scalar.op, tuple(new))
        case Load():
            return Load(scalar.buffer, tuple(new))
        case Cast():
            return Cast(new[0], scalar.dtype)
        case Intrinsic():
            return Intrinsic(scalar.name, tuple(new), scalar.dtype)
        case LoopVar() | Literal():
            return scalar
        case _:
            assert_never(scalar)


def scalar_post_order(root: Scalar) -> Iterator[tuple[Scalar, int]]:
    """Every scalar of a tree after its operands, each with its depth; one that stands twice comes twice."""
    below = operands(root)
    if not below:
        yield root, 0
        return
    stack: list[tuple[Scalar, int, bool]] = [(root, 0, True)]
    stack.extend((inner, 1, False) for inner in reversed(below))
    while stack:
        scalar, depth, is_done = stack.pop()
        if not is_done and (below := operands(scalar)):
            stack.append((scalar, depth, True))
            stack.extend((inner, depth + 1, False) for inner in reversed(below))
        else:
            yield scalar, depth


def inner_scalars(root: Scalar) -> list[Scalar]:
    """Every scalar of a tree after its operands; one that stands twice comes twice."""
    # Operators before their operands, from right to left: the order of evaluation, turned around.
    visited: list[Scalar] = []
    stack = [root]
    while stack:
        scalar = stack.pop()
        visited.append(scalar)
        if isinstance(scalar, Arith):
            stack.extend(scalar.operands)
        elif not isinstance(scalar, LEAVES):
            stack.extend(operands(scalar))
    visited.reverse()
    return visited


def reads_each(body: Statement, buffers: Iterable[Buffer]) -> bool:
    """Whether a statement reads something of each of the buffers; indices are looked at last."""
    missing = {buffer.name for buffer in buffers}
    for with_indices in (False, True):
        for visit in walk(body):
            if visit.event is not Event.ENTER:
                continue
            statement = visit.statement
            if isinstance(statement, Store) and not with_indices:
                stack = [statement.value]
            else:
                stack = list(scalars(statement))
            while stack and missing:
                scalar = stack.pop()
                if isinstance(scalar, Load):
                    missing.discard(scalar.buffer.name)
                    if not with_indices:
                        continue
                stack.extend(operands(scalar))
            if not missing:
                return True
    return not missing
