"""The phases of a kernel: what runs between two barriers, on one thread or on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Statement,
)
from intarsia.native.tir.accesses import ElementAccess, accesses


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """A parallel loop, or a statement of the calling thread.

    Attributes:
        loop: The parallel loop; None if the calling thread runs the statement alone.
        accesses: Loads and stores of buffers that are allocated outside of it, each form once.
        work: Number of scalar operations of all its iterations; guards count as true.
        repeats: Number of its runs: iterations of the serial loops around it.
    """

    loop: For | None
    accesses: tuple[ElementAccess, ...]
    work: int
    repeats: int

    @property
    def extent(self) -> int:
        """Number of iterations that threads share."""
        return 1 if self.loop is None else self.loop.extent


def phases_of(function: PrimFunc) -> tuple[Phase, ...]:
    """Return the phases of a loop function in the order in which they run.

    The loops around a phase are taken together: it runs as often as they say, but its accesses are those of
    all its runs.
    """
    return tuple(_phases(function.body, ()))


def shared_buffers(function: PrimFunc) -> tuple[Buffer, ...]:
    """Return the buffers that a loop function allocates outside of parallel loops, for all its threads."""
    depth, shared = 0, []
    for visit in walk(function.body):
        match visit.statement:
            case For(kind=ForKind.PARALLEL) if visit.event is not Event.ELSE:
                depth += 1 if visit.event is Event.ENTER else -1
            case Allocate(buffer=buffer) if visit.event is Event.ENTER and not depth:
                shared.append(buffer)
    return tuple(shared)


def _phases(statement: Statement, around: tuple[For, ...]) -> Iterator[Phase]:
    """Yield the phases of a statement inside serial loops."""
    match statement:
        case Block(statements=statements):
            for inner in statements:
                yield from _phases(inner, around)
        case Allocate(body=body):
            yield from _phases(body, around)
        case For(kind=ForKind.PARALLEL):
            yield _phase(statement, statement, around)
        case For(body=body) if _has_parallel(body):
            yield from _phases(body, (*around, statement))
        case IfThenElse(then=then, otherwise=otherwise) if _has_parallel(statement):
            yield from _phases(then, around)
            if otherwise is not None:
                yield from _phases(otherwise, around)
        case _:
            yield _phase(statement, None, around)


def _phase(statement: Statement, loop: For | None, around: tuple[For, ...]) -> Phase:
    heads = tuple(For(outer.var, outer.extent, Block(())) for outer in around)
    forms = {
        (access.buffer, access.indices, access.is_store, tuple((head.var, head.extent) for head in loops)): (
            ElementAccess(access.buffer, access.indices, access.is_store, loops, access.is_guarded)
        )
        for access in accesses(statement)
        for loops in ((*heads, *access.loops),)
    }
    repeats = 1
    for outer in around:
        repeats *= outer.extent
    return Phase(loop, tuple(forms.values()), repeats * _work(statement), repeats)


def _work(statement: Statement) -> int:
    """Return the number of scalars that a statement evaluates."""
    total, times = 0, [1]
    for visit in walk(statement):
        inner = visit.statement
        if visit.event is Event.ENTER:
            count = sum(1 for root in scalars(inner) for _ in inner_scalars(root))
            total += count * times[-1]
        if isinstance(inner, For):
            if visit.event is Event.ENTER:
                times.append(times[-1] * inner.extent)
            elif visit.event is Event.LEAVE:
                times.pop()
    return total


def _has_parallel(statement: Statement) -> bool:
    loops = (visit.statement for visit in walk(statement))
    return any(isinstance(loop, For) and loop.kind is ForKind.PARALLEL for loop in loops)
