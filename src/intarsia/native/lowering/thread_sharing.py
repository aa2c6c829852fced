"""Loop nests with bound loops as GPU kernels: one loop over threads, shared memory, and barriers.

A nest comes with its loops over threads where the stages have them, inside each other or one after the other.
Run in order it computes the right thing: what all threads need stands in loops over threads of its own, and
each thread around would fill it again. Here the threads share that work:

* All loops over threads become one; a shorter one is guarded.
* A buffer that a loop over threads inside its allocation fills is shared memory, others are a thread's own.
* A barrier stands before a statement that reads what was written to shared memory since the last barrier, or
  writes what was read or written since; a loop's iterations follow each other.
* A guard that depends on the thread moves inwards, behind the barriers and what the threads do together.
* What stands outside of the loops over threads is computed by each thread, and stored by the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import Final, assert_never

from intarsia.ir import DType
from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Barrier,
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
from intarsia.support.errors import UsageError
from intarsia.support.free_names import NameSupply

_MOST_REGISTERS: Final = 255
"""Maximum number of 32-bit registers of a GPU thread: a larger buffer of a thread is in memory."""
_EXPANDED: Final = (ForKind.UNROLLED, ForKind.VECTORIZED)
Conditions = tuple[Scalar, ...]


def as_kernel(nest: Statement) -> Statement:
    """Return a loop nest as a kernel.

    Without a loop over blocks, or over threads, there is one of them; a parallel loop that is outermost takes
    their place.

    Raises:
        UsageError: The loop over blocks is not outermost, or there are several inside each other; or a guard
            around work that threads share depends on memory.
    """
    names = NameSupply(loop.var.name for loop in _loops(nest))
    outer = flat(nest)[0] if len(flat(nest)) == 1 else nest
    is_grid = isinstance(outer, For) and outer.kind in (ForKind.BLOCK, ForKind.PARALLEL)
    if isinstance(outer, For) and is_grid:
        blocks = For(outer.var, outer.extent, _without_parallel(outer.body), ForKind.BLOCK)
    else:
        blocks = For(LoopVar(names.fresh("block")), 1, _without_parallel(nest), ForKind.BLOCK)
    inside = list(_loops(blocks.body))
    if any(loop.kind is ForKind.BLOCK for loop in inside):
        raise UsageError(
            "a loop that is bound to blockIdx.x stands inside another one",
            help="reorder it outwards, and fuse loops that are bound to one axis",
        )
    count = max((loop.extent for loop in inside if loop.kind is ForKind.THREAD), default=1)
    sharing = _Sharing(LoopVar(names.fresh("thread")), count)
    body = block(sharing.convert(blocks.body, (), is_in_thread=False))
    kernel: Statement = For(sharing.thread, count, body, ForKind.THREAD)
    for buffer in reversed(sharing.shared.values()):
        kernel = Allocate(buffer, kernel)
    return replace(blocks, body=kernel)


@dataclass(slots=True)
class _Accesses:
    """Shared buffers that were accessed since the last barrier."""

    reads: frozenset[Buffer] = frozenset()
    writes: frozenset[Buffer] = frozenset()

    def __or__(self, other: _Accesses) -> _Accesses:
        return _Accesses(self.reads | other.reads, self.writes | other.writes)


@dataclass(slots=True)
class _Sharing:
    """Conversion of one nest.

    Attributes:
        thread: Counter of the kernel's threads.
        count: Number of threads of a block.
        shared: Shared buffers, by the buffer in the nest.
        since: Accesses since the last barrier.
        private: Buffers of a thread around the current statement.
    """

    thread: LoopVar
    count: int
    shared: dict[Buffer, Buffer] = field(default_factory=dict)
    since: _Accesses = field(default_factory=_Accesses)
    private: set[Buffer] = field(default_factory=set)

    def convert(self, statement: Statement, guards: Conditions, *, is_in_thread: bool) -> list[Statement]:
        """Return the statements of one thread.

        Args:
            statement: Statement of the nest.
            guards: Conditions around it that depend on the thread.
            is_in_thread: Whether a loop over threads is around it.
        """
        if not _has_threads(statement):
            return self._alone(statement, guards, is_in_thread)
        match statement:
            case Block():
                parts = (self.convert(inner, guards, is_in_thread=is_in_thread) for inner in flat(statement))
                return [part for converted in parts for part in converted]
            case For(kind=ForKind.THREAD):
                body = Replacement({statement.var: self.thread}).statement(statement.body)
                return self.convert(body, self._first(statement.extent), is_in_thread=True)
            case For():
                return [self._loop(statement, guards, is_in_thread)]
            case Allocate():
                return self._allocation(statement, guards, is_in_thread)
            case IfThenElse():
                return self._guard(statement, guards, is_in_thread)
            case Store() | Barrier():
                raise AssertionError("these hold no loops")
            case _:
                assert_never(statement)

    def _first(self, extent: int) -> Conditions:
        """Return the guard for the first threads of a block."""
        if extent == self.count:
            return ()
        return (Arith(ArithOp.LT, (self.thread, Literal(extent, DType.INT64))),)

    def _loop(self, loop: For, guards: Conditions, is_in_thread: bool) -> Statement:
        """Convert a loop around work of all threads: its first iteration may follow its last one."""
        entry = self.since
        if self._writes_only(loop):
            barrier = self._synchronised(loop)
            self.since, after = _Accesses(), self.since
            body = self.convert(loop.body, guards, is_in_thread=is_in_thread)
            self.since = after
            return block([*barrier, For(loop.var, loop.extent, block(_without_barriers(body)), loop.kind)])
        while True:
            around = self.since
            body = self.convert(loop.body, guards, is_in_thread=is_in_thread)
            if self.since | around == around or loop.extent == 1:
                return For(loop.var, loop.extent, block(body), loop.kind)
            self.since = self.since | around | entry

    def _writes_only(self, loop: For) -> bool:
        """Return whether a loop reads no shared buffer that it writes, and allocates none.

        The loops of a stage write each element once, so that its iterations need no barriers in between.
        """
        if any(isinstance(visit.statement, Allocate) for visit in walk(loop)):
            return False
        accesses = _accessed(loop)
        return not accesses.reads & accesses.writes & frozenset(self.shared.values())

    def _allocation(self, allocate: Allocate, guards: Conditions, is_in_thread: bool) -> list[Statement]:
        before = allocate.buffer
        if _is_filled_together(before, allocate.body):
            after = replace(before, scope=MemoryScope.SHARED)
            self.shared[before] = after
            body = Replacement(accesses={before: lambda indices: (after, indices)}).statement(allocate.body)
            return self.convert(body, guards, is_in_thread=is_in_thread)
        mine = replace(before, scope=_private_scope(before, allocate.body))
        body = Replacement(accesses={before: lambda indices: (mine, indices)}).statement(allocate.body)
        self.private.add(mine)
        return [Allocate(mine, block(self.convert(body, guards, is_in_thread=is_in_thread)))]

    def _guard(self, guard: IfThenElse, guards: Conditions, is_in_thread: bool) -> list[Statement]:
        parts = [part for part, _ in scalar_post_order(guard.cond)]
        if any(isinstance(part, Load) for part in parts):
            raise UsageError(
                "a guard around work that threads share depends on memory",
                help="compute the stages in it outside of it, or in one thread",
            )
        before, otherwise = self.since, guard.otherwise
        if self.thread in parts:
            then = self.convert(guard.then, (*guards, guard.cond), is_in_thread=is_in_thread)
            if otherwise is None:
                return then
            negated = (*guards, Arith(ArithOp.NOT, (guard.cond,)))
            return then + self.convert(otherwise, negated, is_in_thread=is_in_thread)
        then = self.convert(guard.then, guards, is_in_thread=is_in_thread)
        after, self.since = self.since, before
        second = None
        if otherwise is not None:
            second = block(self.convert(otherwise, guards, is_in_thread=is_in_thread))
        self.since = self.since | after
        return [IfThenElse(guard.cond, block(then), second)]

    def _alone(self, statement: Statement, guards: Conditions, is_in_thread: bool) -> list[Statement]:
        """Convert a statement that each thread runs by itself, or the first one for all."""
        statement = _with_private_scopes(statement)
        if not is_in_thread and not self._is_for_one(statement):
            match statement:
                case Block():
                    return [part for inner in flat(statement) for part in self._alone(inner, guards, False)]
                case For() | Allocate():
                    return [replace(statement, body=block(self._alone(statement.body, guards, False)))]
                case _:
                    return [*self._synchronised(statement), *_guarded(statement, guards)]
        guards = guards if is_in_thread else (*guards, *self._first(1))
        return [*self._synchronised(statement), *_guarded(statement, guards)]

    def _is_for_one(self, statement: Statement) -> bool:
        """Return whether a statement outside of the threads writes nothing that each thread needs itself."""
        return not _accessed(statement).writes & self.private

    def _synchronised(self, statement: Statement) -> list[Statement]:
        """Return the barrier that a statement needs before it, and note its accesses."""
        accesses = _accessed(statement)
        shared = frozenset(self.shared.values())
        here = _Accesses(accesses.reads & shared, accesses.writes & shared)
        is_late = here.reads & self.since.writes or here.writes & (self.since.reads | self.since.writes)
        self.since = here if is_late else self.since | here
        return [Barrier()] if is_late else []


def _without_barriers(statements: list[Statement]) -> list[Statement]:
    """Return statements without barriers, which stand in blocks and loops only."""
    without: list[Statement] = []
    for statement in statements:
        match statement:
            case Barrier():
                pass
            case Block():
                without += _without_barriers(flat(statement))
            case For():
                body = block(_without_barriers(flat(statement.body)))
                without.append(replace(statement, body=body))
            case _:
                without.append(statement)
    return without


def _guarded(statement: Statement, guards: Conditions) -> list[Statement]:
    if not guards:
        return [statement]
    condition = reduce(lambda left, right: Arith(ArithOp.AND, (left, right)), guards)
    return [IfThenElse(condition, statement)]


def _without_parallel(statement: Statement) -> Statement:
    """Return a statement with serial loops in place of parallel ones: threads take their place."""
    match statement:
        case Block():
            return block([_without_parallel(inner) for inner in flat(statement)])
        case For():
            kind = ForKind.SERIAL if statement.kind is ForKind.PARALLEL else statement.kind
            return For(statement.var, statement.extent, _without_parallel(statement.body), kind)
        case Allocate():
            return Allocate(statement.buffer, _without_parallel(statement.body))
        case IfThenElse(otherwise=otherwise):
            second = None if otherwise is None else _without_parallel(otherwise)
            return IfThenElse(statement.cond, _without_parallel(statement.then), second)
        case _:
            return statement


def _loops(statement: Statement) -> Iterator[For]:
    for visit in walk(statement):
        if visit.event is Event.ENTER and isinstance(visit.statement, For):
            yield visit.statement


def _has_threads(statement: Statement) -> bool:
    return any(loop.kind is ForKind.THREAD for loop in _loops(statement))


def _accessed(statement: Statement) -> _Accesses:
    reads: set[Buffer] = set()
    writes: set[Buffer] = set()
    for visit in walk(statement):
        if visit.event is not Event.ENTER:
            continue
        for root in scalars(visit.statement):
            reads.update(part.buffer for part, _ in scalar_post_order(root) if isinstance(part, Load))
        if isinstance(visit.statement, Store):
            writes.add(visit.statement.buffer)
    return _Accesses(frozenset(reads), frozenset(writes))


def _is_filled_together(buffer: Buffer, body: Statement) -> bool:
    """Return whether a loop over threads inside the allocation of a buffer writes it."""
    loops = (loop for loop in _loops(body) if loop.kind is ForKind.THREAD)
    return any(buffer in _accessed(loop).writes for loop in loops)


def _with_private_scopes(statement: Statement) -> Statement:
    """Return a statement without threads whose allocations are those of one thread."""
    buffers = {
        visit.statement.buffer: visit.statement.body
        for visit in walk(statement)
        if isinstance(visit.statement, Allocate) and visit.event is Event.ENTER
    }
    for buffer, body in buffers.items():
        mine = replace(buffer, scope=_private_scope(buffer, body))
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


def _private_scope(buffer: Buffer, body: Statement) -> MemoryScope:
    """Return REGISTER for a small buffer whose indices are constant once loops are expanded, else THREAD."""
    if not buffer.shape:
        return buffer.scope
    kinds: dict[LoopVar, set[bool]] = {}
    for loop in _loops(body):
        kinds.setdefault(loop.var, set()).add(loop.kind in _EXPANDED)
    expanded = {var for var, found in kinds.items() if found == {True}}
    indices = [index for access in _indices_of(buffer, body) for index in access]
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
