"""What the threads of a block touch, and whether two of them may touch the same element.

The answer is exact for indices of counters alone: elements are listed for each thread, for all values of the
counters that differ between both accesses. Where there are too many of them, or an index is data, threads are
said to meet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    AsyncCopy,
    AsyncWait,
    Block,
    Buffer,
    For,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    Mma,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.gpu.index_values import Numbers, has_values, value_of
from intarsia.native.tir.affine import Affine
from intarsia.native.tir.rewriting import loop_vars
from intarsia.native.tir.simplify_scalar import ScalarSimplifier

_MOST_ELEMENTS: Final = 2**18
"""Maximum number of elements of an access that are listed, counting one for each thread and iteration."""
_MOST_VALUES: Final = 64
"""Maximum number of values of counters that both accesses share, and that threads' indices depend on."""


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of the threads of a block to memory that they have in common.

    Attributes:
        buffer: The buffer.
        is_store: Whether it writes.
        offset: Offset of the element in the flat buffer; None if any element may be touched.
        loops: Loops of the thread around it, outermost first, without their bodies.
        guards: Conditions around it inside the statement without barriers that it stands in.
    """

    buffer: Buffer
    is_store: bool
    offset: Scalar | None
    loops: tuple[For, ...]
    guards: tuple[Scalar, ...]


def touches(
    statement: Statement, around: tuple[For, ...], common: Collection[Buffer], copied: Collection[Buffer]
) -> Iterator[Touch]:
    """Yield what a statement of a thread without barriers touches.

    A wait may write whatever asynchronous copies do: they are done at some time until then. A product of a
    warp reads elements for other threads.

    Args:
        statement: The statement.
        around: Loops of the thread around it, outermost first, without their bodies.
        common: Buffers that threads have in common and write.
        copied: Buffers among these that asynchronous copies write.
    """
    walker = _Walker([*around], common, copied)
    for visit in walk(statement):
        yield from walker.visit(visit.statement, visit.event)


@dataclass(slots=True)
class _Walker:
    loops: list[For]
    common: Collection[Buffer]
    copied: Collection[Buffer]
    guards: list[Scalar] = field(default_factory=list)

    def visit(self, statement: Statement, event: Event) -> Iterator[Touch]:
        if event is Event.ENTER:
            yield from self._touched(statement)
        match statement, event:
            case For(), Event.ENTER:
                self.loops.append(replace(statement, body=Block(())))
            case For(), Event.LEAVE:
                self.loops.pop()
            case IfThenElse(), Event.ENTER:
                self.guards.append(statement.cond)
            case IfThenElse(), Event.ELSE:
                self.guards[-1] = Arith(ArithOp.NOT, (self.guards[-1],))
            case IfThenElse(), Event.LEAVE:
                self.guards.pop()

    def _touched(self, statement: Statement) -> Iterator[Touch]:
        is_warp = isinstance(statement, Mma)
        for root in scalars(statement):
            for part in inner_scalars(root):
                if isinstance(part, Load):
                    is_row = isinstance(statement, AsyncCopy) and part is statement.source
                    yield from self._touch(part.buffer, None if is_warp or is_row else part.indices, False)
        match statement:
            case Store():
                yield from self._touch(statement.buffer, statement.indices, True)
            case AsyncCopy():
                yield from self._touch(statement.target.buffer, None, True)
            case Mma():
                yield from self._touch(statement.sums.buffer, None, True)
            case AsyncWait():
                for buffer in self.copied:
                    yield from self._touch(buffer, None, True)

    def _touch(self, buffer: Buffer, indices: tuple[Scalar, ...] | None, is_store: bool) -> Iterator[Touch]:
        if buffer not in self.common:
            return
        offset: Scalar | None = None
        if indices is not None and all(map(has_values, indices)):
            offset = Literal(0, DType.INT64)
            for number, index in enumerate(indices):
                stride = Literal(prod(buffer.shape[number + 1 :]), DType.INT64)
                offset = Arith(ArithOp.ADD, (offset, Arith(ArithOp.MUL, (index, stride))))
        yield Touch(buffer, is_store, offset, tuple(self.loops), tuple(self.guards))


def written_in_common(body: Statement) -> tuple[frozenset[Buffer], frozenset[Buffer]]:
    """Return the buffers from outside that a statement of a thread writes, and those that it copies into."""
    mine, written, copied = set[Buffer](), set[Buffer](), set[Buffer]()
    for visit in walk(body):
        match visit.statement:
            case Allocate(buffer=buffer):
                mine.add(buffer)
            case Store(buffer=buffer):
                written.add(buffer)
            case Mma(sums=sums):
                written.add(sums.buffer)
            case AsyncCopy(target=target):
                copied.add(target.buffer)
    return frozenset((written | copied) - mine), frozenset(copied)


@dataclass(slots=True)
class Meetings:
    """The question whether two threads of a block may touch one element.

    Attributes:
        blocks: Loop over blocks, without its body.
        threads: Loop over threads, without its body.
    """

    blocks: For
    threads: For
    _forms: dict[int, tuple[Touch, Affine]] = field(default_factory=dict)
    """Offsets as affine sums, by identity of the access, and the access, which keeps the identity unique."""

    def may_meet(self, first: Touch, second: Touch, common: int) -> bool:
        """Return whether two threads may touch one element that one of them writes.

        Args:
            first: An access of one thread.
            second: An access of the other.
            common: Number of loops around both, counted from outside, that are in the same iteration.
        """
        if first.buffer != second.buffer or not (first.is_store or second.is_store):
            return False
        if first.offset is None or second.offset is None:
            return True
        shared = {loop.var: loop for loop in (self.blocks, *first.loops[:common])}
        forms = self._form(first, first.offset), self._form(second, second.offset)
        # What depends on shared counters alone, and equally in both, moves both elements equally.
        alike = {
            term
            for term, factor in forms[0].terms.items()
            if loop_vars(term) <= shared.keys() and forms[1].factor_of(term) == factor
        }
        needed = {
            var
            for form in forms
            for term in form.terms.keys() - alike
            for var in loop_vars(term) & shared.keys()
        }
        if any(shared[var].count is not None for var in needed):
            return True
        if prod(shared[var].extent for var in needed) > _MOST_VALUES:
            return True
        for values in product(*(range(shared[var].extent) for var in needed)):
            at = {var: np.asarray(value) for var, value in zip(needed, values, strict=True)}
            elements = [
                self._elements(touch, form, alike, at, common)
                for touch, form in zip((first, second), forms, strict=True)
            ]
            if elements[0] is None or elements[1] is None or _meet(elements[0], elements[1]):
                return True
        return False

    def _form(self, touch: Touch, offset: Scalar) -> Affine:
        if id(touch) not in self._forms:
            loops = (loop for loop in (self.blocks, self.threads, *touch.loops) if loop.count is None)
            ranges = {loop.var: (0, loop.extent - 1) for loop in loops}
            self._forms[id(touch)] = touch, ScalarSimplifier(ranges).linear(offset)
        return self._forms[id(touch)][1]

    def _elements(
        self, touch: Touch, form: Affine, alike: Collection[Scalar], at: dict[LoopVar, Numbers], common: int
    ) -> tuple[Numbers, Numbers] | None:
        """Return the elements that an access touches, and their threads in ascending order; None if unknown.

        Args:
            touch: The access.
            form: Its offset.
            alike: Terms of the offset that are left out.
            at: Values of counters that both accesses share.
            common: Number of loops around both that are in the same iteration.
        """
        counters = {self.threads.var, *at, *(loop.var for loop in touch.loops[common:])}
        guards = [part for guard in touch.guards for part in _conjuncts(guard)]
        guards = [guard for guard in guards if loop_vars(guard) <= counters and has_values(guard)]
        terms = [(term, factor) for term, factor in form.terms.items() if term not in alike]
        used = {var for scalar in (*guards, *(term for term, _ in terms)) for var in loop_vars(scalar)}
        loops = [loop for loop in touch.loops[common:] if loop.var in used]
        extents = [self.threads.extent, *(loop.extent for loop in loops)]
        if prod(extents) > _MOST_ELEMENTS:
            return None
        env = dict(at)
        for axis, loop in enumerate((self.threads, *loops)):
            env[loop.var] = np.arange(loop.extent).reshape(
                [-1 if number == axis else 1 for number in range(len(extents))]
            )
        offsets = np.full(extents, form.constant)
        for term, factor in terms:
            offsets = offsets + factor * value_of(term, env)
        is_active = np.ones(extents, np.bool_)
        for guard in guards:
            is_active &= np.asarray(value_of(guard, env), np.bool_)
        threads = np.broadcast_to(env[self.threads.var], extents)
        return offsets[is_active], threads[is_active]


def _meet(first: tuple[Numbers, Numbers], second: tuple[Numbers, Numbers]) -> bool:
    """Return whether an element of one access is one of the other's, by another thread."""
    (elements, threads), (others, other_threads) = first, second
    if not elements.size or not others.size:
        return False
    low = min(int(elements.min()), int(others.min()))
    extent = max(int(elements.max()), int(others.max())) - low + 1
    least, greatest = np.full(extent, -1), np.full(extent, -1)
    least[elements[::-1] - low] = threads[::-1]  # the last of equal indices stays
    greatest[elements - low] = threads
    is_touched = least[others - low] >= 0
    is_mine = (least[others - low] == other_threads) & (greatest[others - low] == other_threads)
    return bool(np.any(is_touched & ~is_mine))


def _conjuncts(guard: Scalar) -> Iterator[Scalar]:
    match guard:
        case Arith(op=ArithOp.AND, operands=(left, right)):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield guard
