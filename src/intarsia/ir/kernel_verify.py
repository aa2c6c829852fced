"""The rules of GPU kernels in loop functions: where blocks, threads, shared memory and barriers stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from intarsia.ir.loop_literal import loop_name_text
from intarsia.ir.loop_walk import Event, scalar_post_order
from intarsia.ir.prim_func import (
    Allocate,
    Barrier,
    Block,
    For,
    ForKind,
    IfThenElse,
    Load,
    LoopVar,
    MemoryScope,
    Statement,
)

_ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)
"""Kinds of loops that all threads of a block run through together."""


@dataclass(slots=True)
class KernelPosition:
    """The loops and guards around a statement, as far as the rules of kernels need them."""

    _around: list[For | IfThenElse] = field(default_factory=list)

    def follow(self, statement: Statement, event: Event) -> None:
        """Enter or leave a statement."""
        if isinstance(statement, (For, IfThenElse)):
            if event is Event.ENTER:
                self._around.append(statement)
            elif event is Event.LEAVE:
                self._around.pop()

    def complaints(self, statement: Statement) -> Iterator[str]:
        """Yield what is wrong with the position of a statement, before it is entered."""
        match statement:
            case For(kind=ForKind.BLOCK):
                if self._around:
                    yield "a loop over blocks stands inside another statement; expected none but allocations"
                yield from _kernel_complaints(statement)
            case For(kind=ForKind.THREAD):
                if not self._is_at_block:
                    yield "a loop over threads stands elsewhere than directly inside a loop over blocks"
            case For(kind=ForKind.PARALLEL) if self._thread is not None:
                yield "a parallel loop stands inside a loop over threads"
            case Allocate(buffer=buffer) if buffer.scope is MemoryScope.SHARED and not self._is_at_block:
                name = loop_name_text(buffer.name)
                yield f"{name} is shared, and stands elsewhere than between the loops over blocks and threads"
            case Barrier():
                yield from self._barrier_complaints()

    @property
    def _is_at_block(self) -> bool:
        inner = self._around[-1] if self._around else None
        return isinstance(inner, For) and inner.kind is ForKind.BLOCK

    @property
    def _thread(self) -> For | None:
        loops = (around for around in self._around if isinstance(around, For))
        return next((loop for loop in loops if loop.kind is ForKind.THREAD), None)

    def _barrier_complaints(self) -> Iterator[str]:
        thread = self._thread
        if thread is None:
            yield "a barrier stands outside of a loop over threads"
            return
        for around in self._around[self._around.index(thread) + 1 :]:
            if isinstance(around, IfThenElse) and not _is_uniform(around, thread.var):
                yield "a barrier stands in a guard that threads of one block may decide differently"
            if isinstance(around, For) and around.kind not in _ORDERED:
                yield f"a barrier stands in a {around.kind.value} loop"


def _kernel_complaints(loop: For) -> Iterator[str]:
    """Yield a complaint if the body of a loop over blocks is not one loop over threads."""
    body: Statement = loop.body
    while isinstance(body, Allocate) and body.buffer.scope is MemoryScope.SHARED:
        body = body.body
    if isinstance(body, Block) and len(body.statements) == 1:
        body = body.statements[0]
    if not (isinstance(body, For) and body.kind is ForKind.THREAD):
        yield "the body of a loop over blocks is no loop over threads, with shared allocations around it"


def _is_uniform(guard: IfThenElse, thread: LoopVar) -> bool:
    """Return whether a condition is the same in all threads: it names neither the thread nor any memory."""
    parts = [part for part, _ in scalar_post_order(guard.cond)]
    return thread not in parts and not any(isinstance(part, Load) for part in parts)
