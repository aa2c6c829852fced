"""Copies of scalars with numbers in place of counters; equal copies are one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from intarsia.ir.loop_walk import operands, with_operands
from intarsia.ir.prim_func import Buffer, Literal, Load, LoopVar, Scalar

_Key = tuple[int, tuple[Literal | None, ...]]


@dataclass(slots=True)
class NumberedCopies:
    """Copies scalars once for each tuple of numbers that they depend on; the originals must stay alive.

    A nest of n loops that is written out has most of its indices many times, as they depend on few of its
    counters: a scalar that is one object is simplified once and emitted once.

    Attributes:
        numbers: Current value of each counter.
        buffers: Replacement of each renamed buffer.
    """

    numbers: dict[LoopVar, Literal] = field(default_factory=dict)
    buffers: Mapping[Buffer, Buffer] = field(default_factory=dict)
    _counters: dict[int, tuple[LoopVar, ...]] = field(default_factory=dict)
    _copies: dict[_Key, Scalar] = field(default_factory=dict)

    def with_buffer(self, old: Buffer, new: Buffer) -> NumberedCopies:
        """Return a copier that also replaces one more buffer, with copies of its own."""
        return replace(self, buffers={**self.buffers, old: new}, _copies={})

    def scalar(self, scalar: Scalar) -> Scalar:
        """Return the copy of a scalar; the same object if nothing in it changes."""
        if isinstance(scalar, LoopVar):
            return self.numbers.get(scalar, scalar)
        if isinstance(scalar, Literal):
            return scalar
        counters = self._counters.get(id(scalar))
        if counters is None:
            counters = self._counters[id(scalar)] = self._counters_of(scalar)
        key = id(scalar), tuple(map(self.numbers.get, counters))
        copy = self._copies.get(key)
        if copy is None:
            copy = self._copies[key] = self._copy(scalar)
        return copy

    def _copy(self, scalar: Scalar) -> Scalar:
        below = tuple(map(self.scalar, operands(scalar)))
        if isinstance(scalar, Load) and self.buffers and scalar.buffer in self.buffers:
            return Load(self.buffers[scalar.buffer], below)
        return with_operands(scalar, below)

    def _counters_of(self, scalar: Scalar) -> tuple[LoopVar, ...]:
        """Return the counters that a scalar depends on, each once."""
        counters: dict[LoopVar, None] = {}
        stack = [scalar]
        while stack:
            inner = stack.pop()
            if isinstance(inner, LoopVar):
                counters[inner] = None
            else:
                stack.extend(operands(inner))
        return tuple(counters)
