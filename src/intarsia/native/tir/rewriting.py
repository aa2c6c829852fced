"""Taking statements apart and together again; recursion follows nesting only, which is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from intarsia.ir import with_prim_func_fields
from intarsia.ir.loop_walk import inner_scalars, operands, walk, with_operands
from intarsia.ir.prim_func import (
    Allocate,
    AnyKernelStatement,
    AsyncCopy,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    Mma,
    PrimFunc,
    Scalar,
    Statement,
    Store,
)
from intarsia.support.free_names import NameSupply

Indices: TypeAlias = tuple[Scalar, ...]
Access: TypeAlias = Callable[[Indices], tuple[Buffer, Indices]]
"""Function from the indices of a replaced buffer to the buffer and indices that hold the element now."""


def flat(statement: Statement) -> list[Statement]:
    """Return the statements that a statement consists of, without blocks around them."""
    statements: list[Statement] = []
    stack = [statement]
    while stack:
        statement = stack.pop()
        if isinstance(statement, Block):
            stack.extend(reversed(statement.statements))
        else:
            statements.append(statement)
    return statements


def block(statements: Iterable[Statement]) -> Statement:
    """Return statements in order as one statement, without blocks in blocks."""
    found = [inner for one in statements for inner in (flat(one) if isinstance(one, Block) else (one,))]
    return found[0] if len(found) == 1 else Block(tuple(found))


def block_like(before: Statement, after: list[Statement]) -> Statement:
    """Return statements as one; `before` itself if it consists of the same objects."""
    if isinstance(before, Block):
        old = before.statements
        if len(old) == len(after) != 1 and all(a is b for a, b in zip(old, after, strict=True)):
            return before
    return block(after)


def with_body(statement: For | Allocate, body: Statement) -> For | Allocate:
    """Return a loop or an allocation around another body; the same object if it is the same body."""
    if body is statement.body:
        return statement
    if isinstance(statement, For):
        return replace(statement, body=body)
    return Allocate(statement.buffer, body)


def with_branches(statement: IfThenElse, then: Statement, otherwise: Statement | None) -> IfThenElse:
    """Return a guard around other statements; the same object if they are the same ones."""
    if then is statement.then and otherwise is statement.otherwise:
        return statement
    return IfThenElse(statement.cond, then, otherwise)


def with_scalars(
    statement: AnyKernelStatement,
    scalar: Callable[[Scalar], Scalar],
    element: Callable[[Buffer, Indices], tuple[Buffer, Indices]],
) -> AnyKernelStatement:
    """Return a statement of a GPU thread over other scalars; the same object if they are the same ones.

    Args:
        statement: The statement.
        scalar: Function from old to new scalars; a load stays one.
        element: Function from a written buffer and its new indices to those that are written instead.
    """

    def written(before: Load) -> Load:
        return Load(*element(before.buffer, tuple(map(scalar, before.indices))))

    def read(before: Load) -> Load:
        after = scalar(before)
        assert isinstance(after, Load), "a load stays one"
        return after

    after = statement
    match statement:
        case AsyncCopy(target=target, source=source):
            valid = None if statement.valid is None else scalar(statement.valid)
            after = AsyncCopy(written(target), read(source), statement.width, valid)
        case Mma(sums=sums, left=left, right=right):
            after = replace(statement, sums=written(sums), left=read(left), right=read(right))
    return statement if after == statement else after


def has_blocks(function: PrimFunc) -> bool:
    """Return whether a loop function has loops over the blocks of a GPU; they stand inside no other loop."""
    stack = flat(function.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, Allocate):
            stack += flat(statement.body)
        elif isinstance(statement, For) and statement.kind is ForKind.BLOCK:
            return True
    return False


def with_kernels(function: PrimFunc, change: Callable[[For], Statement]) -> PrimFunc:
    """Return a loop function with changed kernels.

    Args:
        function: Verified loop function.
        change: Function from a loop over blocks to what takes its place.
    """
    return with_prim_func_fields(function, body=_changed(function.body, change))


def _changed(statement: Statement, change: Callable[[For], Statement]) -> Statement:
    match statement:
        case Block():
            return block([_changed(inner, change) for inner in flat(statement)])
        case Allocate():
            return with_body(statement, _changed(statement.body, change))
        case For(kind=ForKind.BLOCK):
            return change(statement)
        case _:
            return statement


def loop_vars(scalar: Scalar) -> set[LoopVar]:
    """Return the counters that a scalar depends on."""
    return {inner for inner in inner_scalars(scalar) if isinstance(inner, LoopVar)}


def buffer_names(function: PrimFunc) -> NameSupply:
    """Return the names of a function's buffers, so that new ones differ."""
    allocated = [
        visit.statement.buffer.name for visit in walk(function.body) if isinstance(visit.statement, Allocate)
    ]
    return NameSupply((*(param.name for param in function.params), *allocated))


@dataclass(frozen=True, slots=True)
class Replacement:
    """Substitutes counters, whole scalars, and elements of buffers.

    Attributes:
        counters: Scalars by the counter that they replace.
        accesses: Function from old to new indices, by the buffer that is replaced; its allocation stays.
        names: Names of the function's buffers, if allocations are copied and renamed.
        scalars: Replacements of whole scalars, outermost first.
    """

    counters: Mapping[LoopVar, Scalar] = field(default_factory=dict)
    accesses: Mapping[Buffer, Access] = field(default_factory=dict)
    names: NameSupply | None = None
    scalars: Mapping[Scalar, Scalar] = field(default_factory=dict)

    def scalar(self, scalar: Scalar) -> Scalar:
        """Return the scalar after the replacement."""
        if self.scalars and scalar in self.scalars:
            return self.scalars[scalar]
        if isinstance(scalar, LoopVar):
            return self.counters.get(scalar, scalar)
        if isinstance(scalar, Literal):
            return scalar
        below = operands(scalar)
        if self.accesses and isinstance(scalar, Load) and scalar.buffer in self.accesses:
            return Load(*self.accesses[scalar.buffer](tuple(map(self.scalar, below))))
        return with_operands(scalar, tuple(map(self.scalar, below))) if below else scalar

    def statement(self, statement: Statement) -> Statement:
        """Return the statement after the replacement."""
        match statement:
            case Block():
                return block_like(statement, [self.statement(inner) for inner in flat(statement)])
            case Store():
                return self._store(statement)
            case KernelStatement():
                return with_scalars(statement, self.scalar, self._element)
            case For():
                return self._loop(statement)
            case Allocate():
                return self._allocate(statement)
            case IfThenElse():
                cond = self.scalar(statement.cond)
                then = self.statement(statement.then)
                otherwise = None if statement.otherwise is None else self.statement(statement.otherwise)
                if cond is statement.cond:
                    return with_branches(statement, then, otherwise)
                return IfThenElse(cond, then, otherwise)
            case _:
                assert_never(statement)

    def _loop(self, loop: For) -> Statement:
        after = with_body(loop, self.statement(loop.body))
        count = None if loop.count is None else self.scalar(loop.count)
        assert isinstance(after, For)
        return after if count is loop.count else replace(after, count=count)

    def _store(self, store: Store) -> Store:
        value = self.scalar(store.value)
        indices = tuple(map(self.scalar, store.indices))
        if self.accesses and store.buffer in self.accesses:
            return Store(*self._element(store.buffer, indices), value)
        if value is store.value and all(a is b for a, b in zip(indices, store.indices, strict=True)):
            return store
        return Store(store.buffer, indices, value)

    def _element(self, buffer: Buffer, indices: Indices) -> tuple[Buffer, Indices]:
        """Return the buffer and the indices that hold an element now."""
        return self.accesses[buffer](indices) if buffer in self.accesses else (buffer, indices)

    def _allocate(self, allocate: Allocate) -> Allocate:
        if self.names is None:
            after = with_body(allocate, self.statement(allocate.body))
            assert isinstance(after, Allocate)
            return after
        old = allocate.buffer
        new = replace(old, name=self.names.fresh(old.name))
        accesses = {**self.accesses, old: lambda indices: (new, indices)}
        return Allocate(new, replace(self, accesses=accesses).statement(allocate.body))
