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
        number: Tells equal loops apart.
        var: Its counter.
        extent: How often it runs.
        kind: How its iterations are carried out.
    """

    number: int
    var: LoopVar
    extent: int
    kind: ForKind


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """A store as features see it.

    Attributes:
        buffer: What is written.
        indices: Where.
        loops: The loops around it, outermost first.
        counts: Operations of one iteration, in the order of `COUNTS`.
        loads: What one iteration reads.
        allocated: For each buffer of the function that is no parameter, the loops around its allocation.
    """

    buffer: Buffer
    indices: tuple[Scalar, ...]
    loops: tuple[LoopAround, ...]
    counts: tuple[int, ...]
    loads: tuple[Load, ...]
    allocated: dict[str, tuple[LoopAround, ...]]


def store_records(function: PrimFunc) -> tuple[StoreRecord, ...]:
    """The stores of a loop function as `lower` makes it, in the order of its text.

    What lowering wrote as several statements is one again: scalars in registers (shared parts, choices) are
    counted where they are read, and a store in both branches of a choice is one store with a `select`.
    Conditions that guard the rest of a split or a border are not counted: they leave the main loops later.
    """
    walker = _Walker()
    for visit in walk(function.body):
        walker.visit(visit)
    return tuple(walker.records)


@dataclass(slots=True)
class _Content:
    """What a scalar in a register was computed from."""

    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTS))
    loads: list[Load] = field(default_factory=list)


@dataclass(slots=True)
class _Branches:
    """A conditional statement on the way.

    Attributes:
        statement: The statement.
        first: Where the records of its first branch begin.
        registers: Those that are there before it.
        second: Where the records of its second branch begin, if it has come so far.
    """

    statement: IfThenElse
    first: int
    registers: frozenset[str]
    second: int | None = None

    def is_choice_of(self, register: str) -> bool:
        """Whether its first branch gives one of two values to a register."""
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
                self.choice(statement, visit.event)
            case _:
                pass

    def allocate(self, buffer: Buffer) -> None:
        if buffer.scope is MemoryScope.REGISTER and not buffer.shape:
            self.registers[buffer.name] = _Content()
        else:
            self.allocated[buffer.name] = tuple(self.loops)

    def store(self, store: Store) -> None:
        content = self.registers.get(store.buffer.name)
        counts, loads = self.seen_through((store.value,), store.buffer.name)
        if content is not None:
            content.counts = _sum(content.counts, counts)
            content.loads += loads
            for each in self.branches:
                if each.is_choice_of(store.buffer.name):
                    self.add_condition(content, each.statement.cond)
            return
        loops = tuple(self.loops)
        self.records.append(
            StoreRecord(store.buffer, store.indices, loops, tuple(counts), tuple(loads), self.allocated)
        )

    def add_condition(self, content: _Content, cond: Scalar) -> None:
        counts, loads = self.seen_through((cond,), "")
        counts[SELECT] += 1
        content.counts = _sum(content.counts, counts)
        content.loads += loads

    def seen_through(self, values: Iterable[Scalar], own: str) -> tuple[list[int], list[Load]]:
        """Operations and loads of values, with those of the registers that they read."""
        counts, found, loads = [0] * len(COUNTS), list[Load](), list[Load]()
        for value in values:
            count_operations(value, counts, found)
        for load in found:
            content = self.registers.get(load.buffer.name)
            if content is None:
                loads.append(load)
            elif load.buffer.name != own:
                counts = _sum(counts, content.counts)
                loads += content.loads
        return counts, loads

    def choice(self, statement: IfThenElse, event: Event) -> None:
        if event is Event.ENTER:
            self.branches.append(_Branches(statement, len(self.records), frozenset(self.registers)))
        elif event is Event.ELSE:
            self.branches[-1].second = len(self.records)
        else:
            done = self.branches.pop()
            if done.second is not None:
                self.merge(done, done.second)

    def merge(self, done: _Branches, second: int) -> None:
        """Make one record of two branches that write the same element."""
        others = self.records[second:]
        del self.records[second:]
        for other in others:
            for place in range(done.first, second):
                mine = self.records[place]
                if _is_same_element(mine, other):
                    self.records[place] = self.merged(mine, other, done.statement.cond)
                    break
            else:
                self.records.append(other)

    def merged(self, mine: StoreRecord, other: StoreRecord, cond: Scalar) -> StoreRecord:
        counts, loads = self.seen_through((cond,), "")
        counts[SELECT] += 1
        counts = _sum(_sum(counts, mine.counts), other.counts)
        return replace(mine, counts=tuple(counts), loads=(*mine.loads, *other.loads, *loads))


def _is_same_element(first: StoreRecord, second: StoreRecord) -> bool:
    places = [(each.buffer.name, each.indices, each.loops) for each in (first, second)]
    return places[0] == places[1]


def _sum(first: Iterable[int], second: Iterable[int]) -> list[int]:
    return [a + b for a, b in zip(first, second, strict=True)]
