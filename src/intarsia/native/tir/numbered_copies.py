"""Scalars with numbers in place of counters; copies that come out equal are one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from intarsia.ir.loop_walk import operands, with_operands
from intarsia.ir.prim_func import Buffer, Literal, Load, LoopVar, Scalar

_Key = tuple[int, tuple[Literal | None, ...]]


@dataclass(slots=True)
class NumberedCopies:
    """Makes copies of scalars that are alive meanwhile, each once for the numbers that it depends on.

    A nest of n loops that is written out has most of its indices many times, as they depend on few of its
    counters: what is one object is simplified once, and asked for its place once.

    Attributes:
        numbers: What stands for counters now.
        buffers: What stands for buffers.
    """

    numbers: dict[LoopVar, Literal] = field(default_factory=dict)
    buffers: Mapping[Buffer, Buffer] = field(default_factory=dict)
    _counters: dict[int, tuple[LoopVar, ...]] = field(default_factory=dict)
    _made: dict[_Key, Scalar] = field(default_factory=dict)

    def with_buffer(self, old: Buffer, new: Buffer) -> NumberedCopies:
        """The same for now, with something else in place of one more buffer."""
        return replace(self, buffers={**self.buffers, old: new}, _made={})

    def scalar(self, scalar: Scalar) -> Scalar:
        """The copy of a scalar; the same object if nothing in it changes."""
        if isinstance(scalar, LoopVar):
            return self.numbers.get(scalar, scalar)
        if isinstance(scalar, Literal):
            return scalar
        counters = self._counters.get(id(scalar))
        if counters is None:
            counters = self._counters[id(scalar)] = self._counters_of(scalar)
        key = id(scalar), tuple(map(self.numbers.get, counters))
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._copy(scalar)
        return made

    def _copy(self, scalar: Scalar) -> Scalar:
        below = tuple(map(self.scalar, operands(scalar)))
        if isinstance(scalar, Load) and self.buffers and scalar.buffer in self.buffers:
            return Load(self.buffers[scalar.buffer], below)
        return with_operands(scalar, below)

    def _counters_of(self, scalar: Scalar) -> tuple[LoopVar, ...]:
        """The counters that a scalar depends on, each once."""
        found: dict[LoopVar, None] = {}
        stack = [scalar]
        while stack:
            one = stack.pop()
            if isinstance(one, LoopVar):
                found[one] = None
            else:
                stack.extend(operands(one))
        return tuple(found)
