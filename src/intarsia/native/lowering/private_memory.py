"""Memory of a single GPU thread, and what it holds for each of its virtual threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.tir.rewriting import Replacement, block, flat

_MOST_REGISTERS: Final = 255
"""Maximum number of 32-bit registers of a GPU thread: a larger buffer of a thread is in memory."""
_EXPANDED: Final = (ForKind.UNROLLED, ForKind.VECTORIZED, ForKind.VIRTUAL)


def loops_in(statement: Statement) -> Iterator[For]:
    """Yield the loops of a statement, outermost first."""
    for visit in walk(statement):
        if visit.event is Event.ENTER and isinstance(visit.statement, For):
            yield visit.statement


def scalars_inside(statement: Statement) -> Iterator[Scalar]:
    """Yield the scalars of a statement and of all inside."""
    for visit in walk(statement):
        if visit.event is Event.ENTER:
            yield from scalars(visit.statement)


def depending_on(counter: LoopVar, body: Statement, guards: Sequence[Scalar]) -> frozenset[Buffer]:
    """Return the buffers whose contents depend on the counter of a loop around a statement."""
    stores: list[tuple[Buffer, frozenset[Scalar | Buffer]]] = []
    conditions: list[Scalar] = list(guards)
    for visit in walk(body):
        match visit.statement, visit.event:
            case IfThenElse() as guard, Event.ENTER:
                conditions.append(guard.cond)
            case IfThenElse(), Event.LEAVE:
                conditions.pop()
            case Store() as store, Event.ENTER:
                roots = (*store.indices, store.value, *conditions)
                parts = [part for root in roots for part, _ in scalar_post_order(root)]
                read = (part.buffer if isinstance(part, Load) else part for part in parts)
                stores.append((store.buffer, frozenset(read)))
    depending: set[Scalar | Buffer] = {counter}
    while True:
        more = {buffer for buffer, read in stores if read & depending} - depending
        if not more:
            return frozenset(part for part in depending if isinstance(part, Buffer))
        depending |= more


def with_private_scopes(statement: Statement) -> Statement:
    """Return a statement without threads whose allocations are those of one thread."""
    buffers = {
        visit.statement.buffer: visit.statement.body
        for visit in walk(statement)
        if isinstance(visit.statement, Allocate) and visit.event is Event.ENTER
    }
    for buffer, body in buffers.items():
        mine = replace(buffer, scope=private_scope(buffer, buffer, body))
        if mine != buffer:
            statement = _in_scope(statement, buffer, mine)
    return statement


def _in_scope(statement: Statement, before: Buffer, after: Buffer) -> Statement:
    match statement:
        case Block():
            return block([_in_scope(inner, before, after) for inner in flat(statement)])
        case Allocate(buffer=buffer) if buffer == before:
            body = Replacement(accesses={before: lambda indices: (after, indices)}).statement(statement.body)
            return Allocate(after, body)
        case For() | Allocate():
            return replace(statement, body=_in_scope(statement.body, before, after))
        case IfThenElse(otherwise=otherwise):
            second = None if otherwise is None else _in_scope(otherwise, before, after)
            return IfThenElse(statement.cond, _in_scope(statement.then, before, after), second)
        case _:
            return statement


def private_scope(buffer: Buffer, before: Buffer, body: Statement) -> MemoryScope:
    """Return REGISTER for a small buffer whose indices are constant once loops are expanded, else THREAD.

    Args:
        buffer: The buffer, with an element for each virtual thread.
        before: Buffer that the body accesses in its place.
        body: Statement that accesses it.
    """
    if not buffer.shape:
        return buffer.scope
    kinds: dict[LoopVar, set[bool]] = {}
    for loop in loops_in(body):
        kinds.setdefault(loop.var, set()).add(loop.kind in _EXPANDED)
    expanded = {var for var, found in kinds.items() if found == {True}}
    indices = [index for access in _indices_of(before, body) for index in access]
    parts = [part for index in indices for part, _ in scalar_post_order(index)]
    is_constant = all(isinstance(part, (Literal, Arith)) or part in expanded for part in parts)
    return (
        MemoryScope.REGISTER if is_constant and prod(buffer.shape) <= _MOST_REGISTERS else MemoryScope.THREAD
    )


def _indices_of(buffer: Buffer, body: Statement) -> Iterator[tuple[Scalar, ...]]:
    for visit in walk(body):
        if visit.event is not Event.ENTER:
            continue
        if isinstance(visit.statement, Store) and visit.statement.buffer == buffer:
            yield visit.statement.indices
        for root in scalars(visit.statement):
            for part, _ in scalar_post_order(root):
                if isinstance(part, Load) and part.buffer == buffer:
                    yield part.indices
