"""The canonical form of loop functions: what structural equality and the digest compare.

It is the list of the function's parts in the order of the text, with buffers and loop variables numbered
where they are introduced. So their names do not count, nor does how blocks are nested. Those that are
introduced nowhere count by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    AnyKernelStatement,
    Arith,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
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
    MemoryScope,
    Mma,
    PrimFunc,
    Scalar,
    Statement,
    Store,
)

Entry = tuple[object, ...]


def loop_entries(function: PrimFunc) -> Iterator[Entry]:
    """The canonical form of a loop function, without its attributes."""
    numbers = _Numbers()
    for param in function.params:
        numbers.bind(param)
        yield ("param", *_shape(param))
    for visit in walk(function.body):
        statement = visit.statement
        match visit.event:
            case Event.ENTER:
                yield from _entered(statement, numbers)
            case Event.ELSE:
                yield ("else",)
            case Event.LEAVE:
                yield ("end",)
                if isinstance(statement, For):
                    numbers.unbind(statement.var)
                elif isinstance(statement, Allocate):
                    numbers.unbind(statement.buffer)


@dataclass(slots=True)
class _Numbers:
    """The numbers of what is in scope; an inner one hides an outer one that is equal."""

    bound: dict[Buffer | LoopVar, list[int]] = field(default_factory=dict)
    count: int = 0

    def bind(self, item: Buffer | LoopVar) -> None:
        self.bound.setdefault(item, []).append(self.count)
        self.count += 1

    def unbind(self, item: Buffer | LoopVar) -> None:
        self.bound[item].pop()

    def of(self, item: Buffer | LoopVar) -> object:
        if own := self.bound.get(item):
            return own[-1]
        return ("unbound", item.name, _shape(item) if isinstance(item, Buffer) else ())


def _shape(buffer: Buffer) -> Entry:
    scope = () if buffer.scope is MemoryScope.GLOBAL else (buffer.scope.value,)
    return (tuple(buffer.shape), buffer.dtype.value, *scope)


def _entered(statement: Statement, numbers: _Numbers) -> Iterator[Entry]:
    for root in scalars(statement):
        for scalar, _ in scalar_post_order(root):
            yield _scalar(scalar, numbers)
    match statement:
        case Store():
            yield ("store", numbers.of(statement.buffer), len(statement.indices))
        case For():
            numbers.bind(statement.var)
            is_counted = ("counted",) if statement.count is not None else ()
            yield ("for", statement.extent, statement.kind.value, *is_counted)
        case Allocate():
            numbers.bind(statement.buffer)
            yield ("alloc", *_shape(statement.buffer))
        case IfThenElse():
            yield ("if",)
        case KernelStatement():
            yield _kernel_entry(statement, numbers)
        case Block():
            raise AssertionError("blocks are looked through")
        case _:
            assert_never(statement)


def _kernel_entry(statement: AnyKernelStatement, numbers: _Numbers) -> Entry:
    match statement:
        case Barrier():
            return ("barrier",)
        case AsyncCopy(target=target, width=width):
            is_ragged = ("ragged",) if statement.valid is not None else ()
            return ("copy", numbers.of(target.buffer), len(target.indices), width, *is_ragged)
        case AsyncCommit():
            return ("commit",)
        case AsyncWait():
            return ("wait", statement.pending)
        case Mma():
            return ("mma", statement.is_right_transposed, statement.is_left_signed)
        case _:
            assert_never(statement)


def _scalar(scalar: Scalar, numbers: _Numbers) -> Entry:
    match scalar:
        case LoopVar():
            return ("var", numbers.of(scalar))
        case Literal():
            return ("literal", *scalar.key)
        case Load():
            return ("load", numbers.of(scalar.buffer), len(scalar.indices))
        case Arith():
            return ("arith", scalar.op.value, len(scalar.operands))
        case Cast():
            return ("cast", scalar.dtype.value)
        case Intrinsic():
            return ("intrinsic", scalar.name, scalar.dtype.value, len(scalar.args))
        case _:
            assert_never(scalar)
