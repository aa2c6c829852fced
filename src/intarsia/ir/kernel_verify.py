"""The rules of GPU kernels in loop functions: where blocks, threads, shared memory and barriers stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from intarsia.ir.dtype import DType
from intarsia.ir.loop_literal import loop_name_text
from intarsia.ir.loop_walk import Event, scalar_post_order, walk
from intarsia.ir.prim_func import (
    Allocate,
    AnyKernelStatement,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
    Load,
    LoopVar,
    MemoryScope,
    Mma,
    Statement,
    Store,
)
from intarsia.ir.warp import COPY_SIZES, MMA_ROW_ALIGNMENT, WARP

_MMA_DTYPES = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.INT32)
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
            case KernelStatement():
                yield from self._own_complaints(statement)

    def _own_complaints(self, statement: AnyKernelStatement) -> Iterator[str]:
        match statement:
            case Barrier():
                yield from self._uniform_complaints("a barrier")
            case AsyncWait():
                yield from self._uniform_complaints("a wait")
                if statement.pending < 0:
                    yield f"a wait leaves {statement.pending} groups; expected a number from 0"
            case AsyncCopy():
                yield from self._inside_complaints("an asynchronous copy")
                yield from _copy_complaints(statement)
            case Mma():
                yield from self._uniform_complaints("a product of a warp")
                count = WARP if self._thread is None else self._thread.extent
                if count % WARP:
                    yield f"a product of a warp stands in {count} threads; expected a multiple of {WARP}"
                yield from _mma_complaints(statement)
            case AsyncCommit():
                yield from self._inside_complaints("the end of a group of copies")

    @property
    def _is_at_block(self) -> bool:
        inner = self._around[-1] if self._around else None
        return isinstance(inner, For) and inner.kind is ForKind.BLOCK

    @property
    def _thread(self) -> For | None:
        loops = (around for around in self._around if isinstance(around, For))
        return next((loop for loop in loops if loop.kind is ForKind.THREAD), None)

    def _inside_complaints(self, subject: str) -> Iterator[str]:
        """Yield a complaint where a statement of a thread stands outside of threads, or in lanes."""
        if self._thread is None:
            yield f"{subject} stands outside of a loop over threads"
        loops = (around for around in self._around if isinstance(around, For))
        if any(loop.kind is ForKind.VECTORIZED for loop in loops):
            yield f"{subject} stands in a vectorized loop"

    def _uniform_complaints(self, subject: str) -> Iterator[str]:
        """Yield a complaint where not all threads of a block reach a statement together."""
        thread = self._thread
        if thread is None:
            yield f"{subject} stands outside of a loop over threads"
            return
        for around in self._around[self._around.index(thread) + 1 :]:
            if isinstance(around, IfThenElse) and not _is_uniform(around, thread.var):
                yield f"{subject} stands in a guard that threads of one block may decide differently"
            if isinstance(around, For) and around.kind not in _ORDERED:
                yield f"{subject} stands in a {around.kind.value} loop"


def _kernel_complaints(loop: For) -> Iterator[str]:
    """Yield a complaint if the body of a loop over blocks is not one loop over threads."""
    body: Statement = loop.body
    while isinstance(body, Allocate) and body.buffer.scope is MemoryScope.SHARED:
        body = body.body
    if isinstance(body, Block) and len(body.statements) == 1:
        body = body.statements[0]
    if not (isinstance(body, For) and body.kind is ForKind.THREAD):
        yield "the body of a loop over blocks is no loop over threads, with shared allocations around it"
    written, copied = _written_and_copied(loop)
    for buffer in copied:
        if buffer in written:
            yield f"a kernel writes {loop_name_text(buffer.name)}, which it copies asynchronously"


def _written_and_copied(loop: For) -> tuple[set[Buffer], list[Buffer]]:
    """Return the buffers that stores of a kernel write, and those that its asynchronous copies read."""
    written: set[Buffer] = set()
    copied: dict[Buffer, None] = {}
    for visit in walk(loop.body):
        if isinstance(visit.statement, Store):
            written.add(visit.statement.buffer)
        elif isinstance(visit.statement, AsyncCopy):
            copied[visit.statement.source.buffer] = None
    return written, list(copied)


def _copy_complaints(copy: AsyncCopy) -> Iterator[str]:
    """Yield what is wrong with the buffers and the size of an asynchronous copy."""
    written, read = copy.target.buffer, copy.source.buffer
    if written.scope is not MemoryScope.SHARED:
        yield f"an asynchronous copy writes {loop_name_text(written.name)}, which is not shared"
    if read.scope is not MemoryScope.GLOBAL:
        name = loop_name_text(read.name)
        yield f"an asynchronous copy reads {name}, which is {read.scope.value}; expected global"
    if written.dtype is not read.dtype:
        yield f"an asynchronous copy writes {read.dtype.value} into {written.dtype.value}"
    if not written.shape or not read.shape:
        yield "an asynchronous copy has no row: expected buffers with dimensions"
    if copy.size not in COPY_SIZES:
        yield f"an asynchronous copy has {copy.size} bytes; expected 4, 8 or 16"


def _mma_complaints(mma: Mma) -> Iterator[str]:
    """Yield what is wrong with the buffers of a product of a warp."""
    sums, left, right = mma.sums.buffer, mma.left.buffer, mma.right.buffer
    if sums.scope not in (MemoryScope.THREAD, MemoryScope.REGISTER):
        yield f"the sums {loop_name_text(sums.name)} are {sums.scope.value}; expected thread or register"
    if sums.dtype not in (DType.FLOAT32, DType.INT32) or not sums.shape:
        yield f"the sums {loop_name_text(sums.name)} are {sums}; expected rows of float32 or int32"
    elif sums.dtype is DType.INT32 and left.dtype is not DType.INT32:
        yield f"products of {left.dtype.value} have sums in int32; expected float32"
    if mma.is_left_signed and sums.dtype is not DType.INT32:
        yield f"a signed factor has sums in {sums.dtype.value}; expected int32"
    for factor in (left, right):
        name = loop_name_text(factor.name)
        if factor.scope is not MemoryScope.SHARED or len(factor.shape) < 2:
            yield f"the factor {name} is {factor}; expected a matrix in shared memory"
        elif factor.dtype not in _MMA_DTYPES:
            yield f"the factor {name} is {factor.dtype.value}; expected float16, bfloat16, float32 or int32"
        elif factor.shape[-1] * factor.dtype.numpy.itemsize % MMA_ROW_ALIGNMENT:
            yield f"rows of {name} have no multiple of {MMA_ROW_ALIGNMENT} bytes"
    if left.dtype is not right.dtype:
        yield f"a product of {left.dtype.value} and {right.dtype.value}; expected factors of one type"


def _is_uniform(guard: IfThenElse, thread: LoopVar) -> bool:
    """Return whether a condition is the same in all threads: it names neither the thread nor any memory."""
    parts = [part for part, _ in scalar_post_order(guard.cond)]
    return thread not in parts and not any(isinstance(part, Load) for part in parts)
