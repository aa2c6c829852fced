"""Copies of scalars with numbers in place of counters; equal copies are one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import operands, with_operands
from intarsia.ir.prim_func import Buffer, Literal, Load, LoopVar, Scalar


@dataclass(slots=True, eq=False)
class _Counter:
    """A counter, and its number of the moment, if it has one."""

    var: LoopVar
    number: int | None = None
    scalar: Scalar = field(init=False)

    def __post_init__(self) -> None:
        self.scalar = self.var


_Copies: TypeAlias = tuple[tuple[_Counter, ...], dict[tuple[int | None, ...], Scalar]]
"""The counters that a scalar depends on, each once, and its copies by their numbers."""


@dataclass(slots=True)
class NumberedCopies:
    """Copies scalars once for each tuple of numbers that they depend on; the originals must stay alive.

    A nest of n loops that is written out has most of its indices many times, as they depend on few of its
    counters: a scalar that is one object is simplified once and emitted once.

    Attributes:
        buffers: Replacement of each renamed buffer.
    """

    buffers: Mapping[Buffer, Buffer] = field(default_factory=dict)
    _counters: dict[LoopVar, _Counter] = field(default_factory=dict)
    _copies: dict[int, _Copies] = field(default_factory=dict)

    def with_buffer(self, old: Buffer, new: Buffer) -> NumberedCopies:
        """Return a copier that also replaces one more buffer, with copies of its own."""
        return replace(self, buffers={**self.buffers, old: new}, _copies={})

    def number(self, var: LoopVar, number: int | None) -> None:
        """Let a number stand for a counter from now on; None: the counter stands for itself again."""
        counter = self._counter(var)
        counter.number = number
        counter.scalar = var if number is None else Literal(number, DType.INT64)

    def scalar(self, scalar: Scalar) -> Scalar:
        """Return the copy of a scalar; the same object if nothing in it changes."""
        if isinstance(scalar, Literal):
            return scalar
        if isinstance(scalar, LoopVar):
            return self._counter(scalar).scalar
        counters, copies = self._copies.get(id(scalar)) or self._copies_of(scalar)
        key = tuple([counter.number for counter in counters])  # a generator takes twice as long
        copy = copies.get(key)
        if copy is None:
            copy = copies[key] = self._copy(scalar)
        return copy

    def _copy(self, scalar: Scalar) -> Scalar:
        below = tuple(map(self.scalar, operands(scalar)))
        if isinstance(scalar, Load) and self.buffers and scalar.buffer in self.buffers:
            return Load(self.buffers[scalar.buffer], below)
        return with_operands(scalar, below)

    def _counter(self, var: LoopVar) -> _Counter:
        counter = self._counters.get(var)
        if counter is None:
            counter = self._counters[var] = _Counter(var)
        return counter

    def _copies_of(self, scalar: Scalar) -> _Copies:
        """Return the entry of a scalar, made from those of its operands."""
        counters: dict[_Counter, None] = {}
        for inner in operands(scalar):
            if isinstance(inner, LoopVar):
                counters[self._counter(inner)] = None
            elif not isinstance(inner, Literal):
                counters.update(dict.fromkeys((self._copies.get(id(inner)) or self._copies_of(inner))[0]))
        entry: _Copies = tuple(counters), {}
        self._copies[id(scalar)] = entry
        return entry
