"""The stores of a loop function, each with the loops around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from intarsia.autoschedule.features.operation_counts import COUNTS, SELECT, count_operations
from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import Event, Visit, walk
from intarsia.ir.prim_func import (
    Allocate,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Load,
    LoopVar,
    MemoryScope,
    Scalar,
    Store,
)


class LoopAround(NamedTuple):
    """A loop without its body.

    Attributes:
        number: Unique number of the loop within the function.
        var: Loop variable.
        extent: Number of iterations.
        kind: Serial, parallel, vectorised or unrolled.
    """

    number: int
    var: LoopVar
    extent: int
    kind: ForKind


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """A store statement with its loops, operations and loads.

    Attributes:
        buffer: Written buffer.
        indices: Indices of the written element.
        loops: Loops around the store, outermost first.
        counts: Operations of one iteration, in the order of `COUNTS`.
        loads: Loads of one iteration.
        allocated: Loops around the allocation of each buffer that is not a parameter, by name.
    """

    buffer: Buffer
    indices: tuple[Scalar, ...]
    loops: tuple[LoopAround, ...]
    counts: tuple[int, ...]
    loads: tuple[Load, ...]
    allocated: dict[str, tuple[LoopAround, ...]]


def collect_stores(function: PrimFunc) -> tuple[StoreRecord, ...]:
    """Collect the stores of a loop function as `lower` returns it, in textual order.

    Statements that lowering has split are merged again: register scalars (common subexpressions, selects) are
    counted where they are read, and a store in both branches of a condition is one store with a `select`.
    Conditions that guard a remainder or a border are not counted: later passes move them out of the main
    loops.
    """
    walker = _Walker()
    for visit in walk(function.body):
        walker.visit(visit)
    return tuple(walker.records)


@dataclass(slots=True)
class _Content:
    """Operations and loads that a register scalar was computed from."""

    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTS))
    loads: list[Load] = field(default_factory=list)


@dataclass(slots=True)
class _Branches:
    """A conditional statement that is being walked.

    Attributes:
        statement: The statement.
        first: Index of the first record of the then-branch.
        registers: Names of the register scalars that exist before the statement.
        second: Index of the first record of the else-branch; None before it begins.
    """

    statement: IfThenElse
    first: int
    registers: frozenset[str]
    second: int | None = None

    def is_choice_of(self, register: str) -> bool:
        """Whether its then-branch assigns one of two values to a register scalar."""
        return self.second is None and self.statement.otherwise is not None and register in self.registers


@dataclass(slots=True)
class _Walker:
    records: list[StoreRecord] = field(default_factory=list)
    loops: list[LoopAround] = field(default_factory=list)
    allocated: dict[str, tuple[LoopAround, ...]] = field(default_factory=dict)
    registers: dict[str, _Content] = field(default_factory=dict)
    branches: list[_Branches] = field(default_factory=list)

    def visit(self, visit: Visit) -> None:
        statement, is_begin = visit.statement, visit.event is Event.ENTER
        match statement:
            case For() if is_begin:
                around = LoopAround(visit.number, statement.var, statement.extent, statement.kind)
                self.loops.append(around)
            case For():
                self.loops.pop()
            case Allocate() if is_begin:
                self.allocate(statement.buffer)
            case Store():
                self.store(statement)
            case IfThenElse():
                self.visit_condition(statement, visit.event)
            case _:
                pass

    def allocate(self, buffer: Buffer) -> None:
        if buffer.scope is MemoryScope.REGISTER and not buffer.shape:
            self.registers[buffer.name] = _Content()
        else:
            self.allocated[buffer.name] = tuple(self.loops)

    def store(self, store: Store) -> None:
        content = self.registers.get(store.buffer.name)
        counts, loads = self.count_through_registers((store.value,), store.buffer.name)
        if content is not None:
            content.counts = _sum(content.counts, counts)
            content.loads += loads
            for branch in self.branches:
                if branch.is_choice_of(store.buffer.name):
                    self.add_condition(content, branch.statement.cond)
            return
        loops = tuple(self.loops)
        self.records.append(
            StoreRecord(store.buffer, store.indices, loops, tuple(counts), tuple(loads), self.allocated)
        )

    def add_condition(self, content: _Content, cond: Scalar) -> None:
        counts, loads = self.count_through_registers((cond,), "")
        counts[SELECT] += 1
        content.counts = _sum(content.counts, counts)
        content.loads += loads

    def count_through_registers(self, values: Iterable[Scalar], written: str) -> tuple[list[int], list[Load]]:
        """Return operations and loads of values, including those of the register scalars that they read."""
        counts, direct, loads = [0] * len(COUNTS), list[Load](), list[Load]()
        for value in values:
            count_operations(value, counts, direct)
        for load in direct:
            content = self.registers.get(load.buffer.name)
            if content is None:
                loads.append(load)
            elif load.buffer.name != written:
                counts = _sum(counts, content.counts)
                loads += content.loads
        return counts, loads

    def visit_condition(self, statement: IfThenElse, event: Event) -> None:
        if event is Event.ENTER:
            self.branches.append(_Branches(statement, len(self.records), frozenset(self.registers)))
        elif event is Event.ELSE:
            self.branches[-1].second = len(self.records)
        else:
            done = self.branches.pop()
            if done.second is not None:
                self.merge_branches(done, done.second)

    def merge_branches(self, done: _Branches, second: int) -> None:
        """Merge the records of two branches that write the same element."""
        others = self.records[second:]
        del self.records[second:]
        for other in others:
            for index in range(done.first, second):
                record = self.records[index]
                if _is_same_element(record, other):
                    self.records[index] = self.merged(record, other, done.statement.cond)
                    break
            else:
                self.records.append(other)

    def merged(self, record: StoreRecord, other: StoreRecord, cond: Scalar) -> StoreRecord:
        counts, loads = self.count_through_registers((cond,), "")
        counts[SELECT] += 1
        counts = _sum(_sum(counts, record.counts), other.counts)
        return replace(record, counts=tuple(counts), loads=(*record.loads, *other.loads, *loads))


def _is_same_element(first: StoreRecord, second: StoreRecord) -> bool:
    elements = [(record.buffer.name, record.indices, record.loops) for record in (first, second)]
    return elements[0] == elements[1]


def _sum(first: Iterable[int], second: Iterable[int]) -> list[int]:
    return [a + b for a, b in zip(first, second, strict=True)]
