"""Kernels without the barriers that order nothing.

Lowering puts a barrier where data flows through shared memory, without a look at indices. One is needless if
no two threads touch an element, one of them writing, in statements that only it keeps apart:

    row[t] = x[b, t]; barrier; y[b, t] = row[t];        each thread reads what it wrote
    row[t] = x[b, t]; barrier; barrier; y[b, t] = row[7 - t];        the other one is enough

A thread's statements are taken as stretches without barriers. Two stretches are connected if a thread may
come from one to the other without a barrier: in the same iteration of the loops around both, or from one of a
loop to a later one. A barrier goes if all threads are apart in each two stretches that are connected without
it, and were not with it. What is connected already is right by assumption: the kernel has no race.

A connection from iteration to iteration says nothing about the counters of that loop and of those inside it:
threads have to be apart for all of their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Allocate, Barrier, Block, Buffer, For, IfThenElse, Statement
from intarsia.native.gpu.kernel_list import kernel_of
from intarsia.native.gpu.thread_touches import Meetings, Touch, touches, written_in_common
from intarsia.native.tir.rewriting import block, flat, with_body, with_kernels

_MOST_PAIRS: Final = 2_000
"""Maximum number of pairs of accesses that are compared for a barrier; it stays where there are more."""


def without_needless_barriers(function: PrimFunc) -> PrimFunc:
    """Return a loop function whose kernels have no barrier that can be shown to order nothing.

    Args:
        function: Verified loop function without races.
    """
    return with_kernels(function, _kernel)


def _kernel(loop: For) -> Statement:
    threads = kernel_of(loop).thread_loop
    if not _has_barrier(threads.body):
        return loop
    stretches = _Stretches(*written_in_common(threads.body))
    body = stretches.part(threads.body, ())
    order = sorted(stretches.barriers, key=lambda number: -stretches.barriers[number])
    meetings = Meetings(replace(loop, body=Block(())), replace(threads, body=Block(())))
    gone: frozenset[int] = frozenset()
    connected = _connected(body, gone)
    for number in order:
        after = _connected(body, gone | {number})
        if _are_apart(after - connected, stretches.touched, meetings):
            gone, connected = gone | {number}, after
    return with_body(loop, _around(loop.body, threads, _rebuilt(body, gone))) if gone else loop


class _Stretch(NamedTuple):
    """Statements of a thread without barriers."""

    number: int
    statements: tuple[Statement, ...]


class _Barrier(NamedTuple):
    number: int


class _Loop(NamedTuple):
    """A loop around barriers, its number of loops around it, and the parts of its body."""

    loop: For
    depth: int
    parts: tuple[_Part, ...]


class _Guard(NamedTuple):
    """A guard around barriers, which all threads of a block decide alike."""

    guard: IfThenElse
    then: tuple[_Part, ...]
    otherwise: tuple[_Part, ...]


class _Memory(NamedTuple):
    """An allocation of a thread around barriers."""

    buffer: Buffer
    parts: tuple[_Part, ...]


_Part = _Stretch | _Barrier | _Loop | _Guard | _Memory


@dataclass(slots=True)
class _Stretches:
    """The statements of a thread as stretches.

    Attributes:
        common: Buffers that threads have in common and write.
        copied: Buffers among these that asynchronous copies write.
        barriers: Number of loops around each barrier.
        touched: Accesses of each stretch.
    """

    common: frozenset[Buffer]
    copied: frozenset[Buffer]
    barriers: dict[int, int] = field(default_factory=dict)
    touched: list[tuple[Touch, ...]] = field(default_factory=list)

    def part(self, statement: Statement, loops: tuple[For, ...]) -> tuple[_Part, ...]:
        parts: list[_Part] = []
        stretch: list[Statement] = []
        for inner in flat(statement):
            if not _has_barrier(inner):
                stretch.append(inner)
                continue
            parts += self._stretch(stretch, loops)
            stretch = []
            parts.append(self._with_barriers(inner, loops))
        return (*parts, *self._stretch(stretch, loops))

    def _stretch(self, statements: list[Statement], loops: tuple[For, ...]) -> list[_Part]:
        if not statements:
            return []
        touched = touches(block(statements), loops, self.common, self.copied)
        self.touched.append(tuple(dict.fromkeys(touched)))
        return [_Stretch(len(self.touched) - 1, tuple(statements))]

    def _with_barriers(self, statement: Statement, loops: tuple[For, ...]) -> _Part:
        match statement:
            case Barrier():
                number = len(self.barriers)
                self.barriers[number] = len(loops)
                return _Barrier(number)
            case For():
                inside = self.part(statement.body, (*loops, replace(statement, body=Block(()))))
                return _Loop(statement, len(loops), inside)
            case IfThenElse(otherwise=otherwise):
                second = () if otherwise is None else self.part(otherwise, loops)
                return _Guard(statement, self.part(statement.then, loops), second)
            case Allocate():
                return _Memory(statement.buffer, self.part(statement.body, loops))
            case _:
                raise AssertionError("others hold no barriers")


class _End(NamedTuple):
    """A stretch that is reached without a barrier, and the numbers of loops around it that are repeated so.

    In other loops that end with it, only the first iteration is reached, or the last one.
    """

    stretch: int
    repeated: frozenset[int]


class _Connection(NamedTuple):
    """Two stretches that are connected.

    Attributes:
        first: The earlier one.
        second: The later one.
        common: Number of loops around both, from outside, that are in the same iteration.
        is_later: Whether the second one is in a later iteration of the loop behind these.
        is_repeated: Whether any iterations of that loop are connected, not only neighbours.
    """

    first: _End
    second: _End
    common: int
    is_later: bool
    is_repeated: bool


class _Ends(NamedTuple):
    """What is reached without a barrier from the begin of statements and from their end.

    Attributes:
        first: Stretches behind their begin.
        last: Stretches before their end.
        is_open: Whether their end is reached from their begin.
    """

    first: frozenset[_End]
    last: frozenset[_End]
    is_open: bool


def _connected(parts: Iterable[_Part], gone: frozenset[int]) -> set[_Connection]:
    """Return the connected stretches of a kernel without some of its barriers."""
    connections: set[_Connection] = set()
    _ends(parts, 0, gone, connections)
    return connections


def _ends(parts: Iterable[_Part], common: int, gone: frozenset[int], connections: set[_Connection]) -> _Ends:
    first, last, is_open = frozenset[_End](), frozenset[_End](), True
    for part in parts:
        ends = _ends_of_part(part, common, gone, connections)
        connections.update(_Connection(a, b, common, False, False) for a in last for b in ends.first)
        first = first | ends.first if is_open else first
        last = last | ends.last if ends.is_open else ends.last
        is_open = is_open and ends.is_open
    return _Ends(first, last, is_open)


def _ends_of_part(part: _Part, common: int, gone: frozenset[int], connections: set[_Connection]) -> _Ends:
    match part:
        case _Stretch():
            alone = frozenset([_End(part.number, frozenset())])
            return _Ends(alone, alone, True)
        case _Barrier():
            return _Ends(frozenset(), frozenset(), part.number in gone)
        case _Memory():
            return _ends(part.parts, common, gone, connections)
        case _Guard():
            then = _ends(part.then, common, gone, connections)
            otherwise = _ends(part.otherwise, common, gone, connections)
            return _Ends(
                then.first | otherwise.first, then.last | otherwise.last, then.is_open or otherwise.is_open
            )
        case _Loop():
            inside = _ends(part.parts, common + 1, gone, connections)
            if part.loop.extent > 1:
                connections.update(
                    _Connection(a, b, common, True, inside.is_open) for a in inside.last for b in inside.first
                )
            may_be_empty = part.loop.count is not None or part.loop.extent == 0
            if not inside.is_open:
                return _Ends(inside.first, inside.last, may_be_empty)
            first, last = (
                frozenset(_End(end.stretch, end.repeated | {part.depth}) for end in ends)
                for ends in (inside.first, inside.last)
            )
            return _Ends(first, last, True)


def _are_apart(
    connections: set[_Connection], touched: Sequence[tuple[Touch, ...]], meetings: Meetings
) -> bool:
    """Return whether no two threads touch one element, one of them writing, in connected stretches."""
    compared = {(pair.first.stretch, pair.second.stretch, pair.common) for pair in connections}
    pairs = [
        (first, second, common)
        for one, other, common in sorted(compared)
        for first in touched[one]
        for second in touched[other]
        if first.buffer == second.buffer and (first.is_store or second.is_store)
    ]
    if any(first.offset is None or second.offset is None for first, second, _ in pairs):
        return False
    return len(pairs) <= _MOST_PAIRS and not any(meetings.may_meet(*pair) for pair in pairs)


def _has_barrier(statement: Statement) -> bool:
    return any(isinstance(visit.statement, Barrier) for visit in walk(statement))


def _rebuilt(parts: Iterable[_Part], gone: frozenset[int]) -> Statement:
    """Return statements without some barriers."""
    statements: list[Statement] = []
    for part in parts:
        match part:
            case _Stretch():
                statements += part.statements
            case _Barrier():
                statements += [] if part.number in gone else [Barrier()]
            case _Memory():
                statements.append(Allocate(part.buffer, _rebuilt(part.parts, gone)))
            case _Loop():
                inside = _rebuilt(part.parts, gone)
                statements += [with_body(part.loop, inside)] if flat(inside) else []
            case _Guard():
                then, otherwise = _rebuilt(part.then, gone), _rebuilt(part.otherwise, gone)
                if flat(then) or flat(otherwise):
                    second = otherwise if flat(otherwise) else None
                    statements.append(IfThenElse(part.guard.cond, then, second))
    return block(statements)


def _around(statement: Statement, threads: For, body: Statement) -> Statement:
    """Return allocations around a loop over threads with another body of that."""
    match statement:
        case Allocate():
            return with_body(statement, _around(statement.body, threads, body))
        case Block():
            return block([_around(inner, threads, body) for inner in flat(statement)])
        case _:
            return with_body(threads, body)
