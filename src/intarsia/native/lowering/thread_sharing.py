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
* A loop over virtual threads moves inwards as well, around each statement that depends on its counter. What a
  thread keeps gets an element for each of its virtual threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import assert_never

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
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.lowering.free_loops import kernel_nests
from intarsia.native.lowering.private_memory import (
    depending_on,
    loops_in,
    private_scope,
    scalars_inside,
    with_private_scopes,
)
from intarsia.native.tir.rewriting import Replacement, block, flat
from intarsia.support.errors import UsageError
from intarsia.support.free_names import NameSupply

Conditions = tuple[Scalar, ...]


def as_kernels(statement: Statement) -> Statement:
    """Return loop nests as kernels; what no schedule has bound runs in as many threads as it can.

    Raises:
        UsageError: The statement cannot be shared among threads, as for `as_kernel`.
    """
    return _each_as_kernel(kernel_nests(statement))


def _each_as_kernel(statement: Statement) -> Statement:
    if not any(loop.kind is ForKind.BLOCK for loop in loops_in(statement)):
        return as_kernel(statement) if flat(statement) else statement
    match statement:
        case Block():
            return block([_each_as_kernel(inner) for inner in flat(statement)])
        case Allocate():
            return Allocate(statement.buffer, _each_as_kernel(statement.body))
        case _:
            return as_kernel(statement)


def as_kernel(nest: Statement) -> Statement:
    """Return a loop nest as a kernel.

    Without a loop over blocks, or over threads, there is one of them; a parallel loop that is outermost takes
    their place.

    Raises:
        UsageError: The loop over blocks is not outermost, or there are several inside each other; or a guard
            around work that threads share depends on memory.
    """
    names = NameSupply(loop.var.name for loop in loops_in(nest))
    outer = flat(nest)[0] if len(flat(nest)) == 1 else nest
    is_grid = isinstance(outer, For) and outer.kind in (ForKind.BLOCK, ForKind.PARALLEL)
    if isinstance(outer, For) and is_grid:
        blocks = For(outer.var, outer.extent, _without_parallel(outer.body), ForKind.BLOCK)
    else:
        blocks = For(LoopVar(names.fresh("block")), 1, _without_parallel(nest), ForKind.BLOCK)
    inside = list(loops_in(blocks.body))
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
        virtual: Loops over virtual threads around the current statement.
    """

    thread: LoopVar
    count: int
    shared: dict[Buffer, Buffer] = field(default_factory=dict)
    since: _Accesses = field(default_factory=_Accesses)
    private: set[Buffer] = field(default_factory=set)
    virtual: list[For] = field(default_factory=list)

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
                return [
                    part
                    for inner in flat(statement)
                    for part in self.convert(inner, guards, is_in_thread=is_in_thread)
                ]
            case For(kind=ForKind.THREAD):
                body = Replacement({statement.var: self.thread}).statement(statement.body)
                kept = () if is_in_thread else self._of_virtual_threads(guards, body)
                return self.convert(body, (*kept, *self._first(statement.extent)), is_in_thread=True)
            case For(kind=ForKind.VIRTUAL):
                self.virtual.append(statement)
                parts = self.convert(statement.body, guards, is_in_thread=is_in_thread)
                self.virtual.pop()
                return parts
            case For():
                return [self._loop(statement, guards, is_in_thread)]
            case Allocate():
                return self._allocation(statement, guards, is_in_thread)
            case IfThenElse():
                return self._guard(statement, guards, is_in_thread)
            case Store() | KernelStatement():
                raise AssertionError("these hold no loops")
            case _:
                assert_never(statement)

    def _of_virtual_threads(self, guards: Conditions, body: Statement) -> Conditions:
        """Return the guards of virtual threads for the body of a loop over threads; () for shared work.

        Only what is computed once for all of them does not depend on their counters.
        """
        counters = {loop.var for loop in self.virtual}
        parts = {part for root in scalars_inside(body) for part, _ in scalar_post_order(root)}
        return guards if counters & parts else ()

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
        moving = [loop for loop in self.virtual if before in depending_on(loop.var, allocate.body, guards)]
        counters = tuple(loop.var for loop in moving)
        shape = (*(loop.extent for loop in moving), *before.shape)
        scope = private_scope(replace(before, shape=shape), before, allocate.body)
        mine = replace(before, shape=shape, scope=scope)
        accesses = {before: lambda indices: (mine, (*counters, *indices))}
        body = Replacement(accesses=accesses).statement(allocate.body)
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
        if self.thread in parts or any(loop.var in parts for loop in self.virtual):
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
        statement = with_private_scopes(statement)
        if not is_in_thread and not self._is_for_one(statement):
            if self._is_for_each(statement):
                return [*self._synchronised(statement), *_guarded(statement, guards)]
            match statement:
                case Block():
                    return [part for inner in flat(statement) for part in self._alone(inner, guards, False)]
                case For() | Allocate():
                    return [self._alone_inside(statement, guards)]
                case _:
                    return [*self._synchronised(statement), *self._in_virtual_threads(statement, guards)]
        guards = guards if is_in_thread else (*guards, *self._first(1))
        return [*self._synchronised(statement), *self._in_virtual_threads(statement, guards)]

    def _alone_inside(self, statement: For | Allocate, guards: Conditions) -> Statement:
        """Convert the inside of a statement that no thread is around, in loops over virtual threads."""
        parts = {part for root in scalars_inside(statement) for part, _ in scalar_post_order(root)}
        around, self.virtual = self.virtual, [loop for loop in self.virtual if loop.var not in parts]
        inside: Statement = replace(statement, body=block(self._alone(statement.body, guards, False)))
        moved, self.virtual = [loop for loop in around if loop not in self.virtual], around
        if moved and _has_barrier(inside):
            raise UsageError(
                "what one virtual thread computes for all threads needs a barrier",
                help="compute the stage in the loop over threads, or outside of virtual threads",
            )
        for loop in reversed(moved):
            inside = For(loop.var, loop.extent, inside, ForKind.VIRTUAL)
        return inside

    def _in_virtual_threads(self, statement: Statement, guards: Conditions) -> list[Statement]:
        """Return a guarded statement in the loops over virtual threads that it depends on."""
        (guarded,) = _guarded(statement, guards)
        parts = {part for root in scalars_inside(guarded) for part, _ in scalar_post_order(root)}
        for loop in reversed(self.virtual):
            if loop.var in parts:
                guarded = For(loop.var, loop.extent, guarded, ForKind.VIRTUAL)
        return [guarded]

    def _is_for_one(self, statement: Statement) -> bool:
        """Return whether a statement outside of the threads writes nothing that each thread needs itself."""
        return not _accessed(statement).writes & self.private

    def _is_for_each(self, statement: Statement) -> bool:
        """Return whether a statement writes nothing but what each thread has itself."""
        visits = (visit.statement for visit in walk(statement) if visit.event is Event.ENTER)
        inside = {inner.buffer for inner in visits if isinstance(inner, Allocate)}
        return _accessed(statement).writes <= self.private | inside

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


def _has_threads(statement: Statement) -> bool:
    return any(loop.kind is ForKind.THREAD for loop in loops_in(statement))


def _has_barrier(statement: Statement) -> bool:
    return any(isinstance(visit.statement, Barrier) for visit in walk(statement))


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
    loops = (loop for loop in loops_in(body) if loop.kind is ForKind.THREAD)
    return any(buffer in _accessed(loop).writes for loop in loops)
