"""Loops whose iterations are independent, as the threads of a GPU.

What no schedule has bound, such as the statements of operators that are no function of one element, would run
in one thread. Here every loop moves outwards whose iterations touch no element that another one writes, and
all of these together become blocks and threads:

    for s in n { for i in m { y[s + 1, i] = y[s, i] + x[s + 1, i]; } }

    for block b in m / 32 { for thread t in 32 { if b * 32 + t < m { for s in n { .. i = b * 32 + t .. } } } }

Moving such a loop is right whatever is around it: two of its iterations have no element in common that is
written, so that their order does not matter, and within one the order stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from intarsia.ir import DType
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
    Literal,
    LoopVar,
    MemoryScope,
    Scalar,
    Statement,
)
from intarsia.ir.warp import WARP
from intarsia.native.tir.accesses import ElementAccess, accesses, are_disjoint
from intarsia.native.tir.affine import Range
from intarsia.native.tir.rewriting import Replacement, block, flat
from intarsia.support.free_names import NameSupply

_MOST_THREADS: Final = 256
_ENOUGH_BLOCKS: Final = 64
"""Number of blocks from which on they get more threads than a warp."""
_MOST_PAIRS: Final = 400
"""Maximum number of pairs of accesses that are compared; a statement with more stays as it is."""


def kernel_nests(nest: Statement) -> Statement:
    """Return a loop nest as nests with blocks and threads, as far as its loops are independent.

    Nests that have bound loops stay as they are, as do those without an independent loop.
    """
    loops = [visit.statement for visit in walk(nest) if isinstance(visit.statement, For)]
    is_bound = any(loop.kind in (ForKind.BLOCK, ForKind.THREAD, ForKind.VIRTUAL) for loop in loops)
    if is_bound or any(isinstance(visit.statement, KernelStatement) for visit in walk(nest)):
        return nest
    return _parts_in_threads(nest, NameSupply(loop.var.name for loop in loops))


def _parts_in_threads(statement: Statement, names: NameSupply) -> Statement:
    after = _with_free_loops(statement, names)
    if after is not statement:
        return after
    match statement:
        case Block():
            parts: list[Statement] = []
            alone: list[Statement] = []
            for inner in flat(statement):
                part = _parts_in_threads(inner, names)
                if part is inner:
                    alone.append(inner)
                    continue
                parts += [*([block(alone)] if alone else []), part]
                alone = []
            return block([*parts, *([block(alone)] if alone else [])]) if parts else statement
        case Allocate(buffer=buffer) if buffer.scope is MemoryScope.GLOBAL:
            body = _parts_in_threads(statement.body, names)
            return statement if body is statement.body else Allocate(buffer, body)
        case _:
            return statement


def _with_free_loops(nest: Statement, names: NameSupply) -> Statement:
    """Return a loop nest with its independent loops as blocks and threads; itself if there are none."""
    free: list[For] = []
    body = nest
    while (moved := _outermost(body, names, {loop.var: (0, loop.extent - 1) for loop in free})) is not None:
        free.append(moved)
        body = moved.body
    count = prod(loop.extent for loop in free)
    return _in_threads(free, body, count, names) if free else nest


def _in_threads(free: Sequence[For], body: Statement, count: int, names: NameSupply) -> Statement:
    threads = WARP
    while threads < _MOST_THREADS and threads * _ENOUGH_BLOCKS * 2 <= count:
        threads *= 2
    block_var, thread_var = LoopVar(names.fresh("block")), LoopVar(names.fresh("thread"))
    number: Scalar = _sum(Arith(ArithOp.MUL, (block_var, _number(threads))), thread_var)
    at: dict[LoopVar, Scalar] = {}
    rest = number
    for loop in reversed(free):
        at[loop.var] = rest if loop is free[0] else Arith(ArithOp.FLOOR_MOD, (rest, _number(loop.extent)))
        rest = Arith(ArithOp.FLOOR_DIV, (rest, _number(loop.extent)))
    body = Replacement(counters=at).statement(body)
    if count % threads:
        body = IfThenElse(Arith(ArithOp.LT, (number, _number(count))), body)
    grid = For(thread_var, threads, body, ForKind.THREAD)
    return For(block_var, -(-count // threads), grid, ForKind.BLOCK)


def _outermost(statement: Statement, names: NameSupply, around: dict[LoopVar, Range]) -> For | None:
    """Return a statement as an independent loop around the rest of it; None if it has none."""
    for loop in _candidates(statement):
        wanted = _Wanted(LoopVar(names.fresh(loop.var.name)), loop.extent, around)
        body = wanted.without(statement, loop.var)
        if body is not None and wanted.is_free(body):
            return For(wanted.var, loop.extent, body)
    return None


def _candidates(statement: Statement) -> list[For]:
    """Return the loops that every part of a statement may have in common, outermost first."""
    match flat(statement):
        case [For() as loop]:
            return [*([loop] if loop.count is None and loop.extent > 1 else []), *_candidates(loop.body)]
        case [Allocate() as allocate]:
            return _candidates(allocate.body)
        case [first, _, *_]:
            return _candidates(first)
    return []


@dataclass(slots=True)
class _Wanted:
    """A loop that is moved outwards.

    Attributes:
        var: Its counter.
        extent: Number of its iterations.
        around: Ranges of the counters around the statement.
    """

    var: LoopVar
    extent: int
    around: dict[LoopVar, Range]

    def without(self, statement: Statement, var: LoopVar) -> Statement | None:
        """Return a statement without the loop in each of its parts; None if a part has no such loop.

        Args:
            statement: The statement.
            var: Counter of the loop in the first part; other parts have one of the same extent, which is the
                first such loop of theirs.
        """
        match statement:
            case Block():
                parts = []
                for position, inner in enumerate(flat(statement)):
                    part = self.without(inner, var if position == 0 else self._first_like(inner, var))
                    if part is None:
                        return None
                    parts.append(part)
                return block(parts)
            case For() if (
                statement.var == var and statement.count is None and statement.extent == self.extent
            ):
                return Replacement(counters={var: self.var}).statement(statement.body)
            case For():
                body = self.without(statement.body, var)
                return None if body is None else replace(statement, body=body)
            case Allocate():
                body = self.without(statement.body, var)
                return None if body is None else self._for_one(statement.buffer, body)
            case _:
                return None

    def _first_like(self, statement: Statement, otherwise: LoopVar) -> LoopVar:
        loops = (loop for loop in _candidates(statement) if loop.extent == self.extent)
        return next((loop.var for loop in loops), otherwise)

    def _for_one(self, buffer: Buffer, body: Statement) -> Statement | None:
        """Return an allocation for one iteration; None if iterations exchange elements of it.

        Dimensions that the loop's counter alone is the index of shrink to one element.
        """
        if not self.is_free(body):
            return None
        indices = [access.indices for access in accesses(body) if access.buffer == buffer]
        mine = {
            dimension
            for dimension in range(len(buffer.shape))
            if indices and all(index[dimension] == self.var for index in indices)
        }
        small = replace(
            buffer, shape=tuple(1 if n in mine else extent for n, extent in enumerate(buffer.shape))
        )

        def element(at: tuple[Scalar, ...]) -> tuple[Buffer, tuple[Scalar, ...]]:
            return small, tuple(_number(0) if n in mine else index for n, index in enumerate(at))

        return Allocate(small, Replacement(accesses={buffer: element}).statement(body))

    def is_free(self, body: Statement) -> bool:
        """Return whether no iteration touches an element that another one writes."""
        by_buffer: dict[Buffer, list[ElementAccess]] = {}
        for access in accesses(body):
            by_buffer.setdefault(access.buffer, []).append(access)
        pairs = [
            (first, second)
            for group in by_buffer.values()
            for number, first in enumerate(group)
            for second in group[number:]
            if first.is_store or second.is_store
        ]
        ranges = {**self.around, self.var: (0, self.extent - 1)}
        return len(pairs) <= _MOST_PAIRS and all(
            are_disjoint(first, second, ranges, self.var) for first, second in pairs
        )


def _sum(left: Scalar, right: Scalar) -> Scalar:
    return Arith(ArithOp.ADD, (left, right))


def _number(value: int) -> Literal:
    return Literal(value, DType.INT64)
