"""The kernels of a loop function, in the order of their launches."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    For,
    ForKind,
    Load,
    MemoryScope,
    PrimFunc,
    Statement,
    Store,
)
from intarsia.native.emission.types import stored_bytes
from intarsia.support.errors import CompileError

MOST_THREADS: Final = 1024
"""Maximum number of threads of a block, on every GPU since compute capability 2.0."""
MOST_BLOCKS: Final = 2**31 - 1
"""Maximum number of blocks of a grid in its first dimension."""
DECLARED_SHARED_BYTES: Final = 48 * 1024
"""Maximum size of the shared memory that a kernel declares, in bytes; a launch adds more."""
MOST_SHARED_BYTES: Final = 99 * 1024
"""Maximum size of the shared memory of a block in bytes, on every GPU since compute capability 8.0.

GPUs of data centres have more: 163 KB (8.0) and 227 KB (9.0).
"""
SHARED_ALIGNMENT: Final = 16
"""Alignment of shared buffers in bytes: that of the widest vector access."""


@dataclass(frozen=True)
class Kernel:
    """A kernel.

    Attributes:
        block_loop: Loop over its blocks.
        thread_loop: Loop over the threads of a block.
        shared: Buffers in shared memory, outermost first.
        reads: Buffers in global memory that it reads.
        writes: Buffers in global memory that it writes.
    """

    block_loop: For
    thread_loop: For
    shared: tuple[Buffer, ...]
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]

    @property
    def arguments(self) -> tuple[Buffer, ...]:
        """Buffers in global memory, first those that are read."""
        return tuple(dict.fromkeys((*self.reads, *self.writes)))

    @property
    def shared_offsets(self) -> dict[str, int]:
        """Offset of each shared buffer in the block's shared memory, in bytes, by name."""
        offsets, end = {}, 0
        for buffer in self.shared:
            offsets[buffer.name] = end
            end += aligned_bytes(buffer)
        return offsets

    @property
    def shared_bytes(self) -> int:
        """Size of the shared memory of a block in bytes."""
        return sum(map(aligned_bytes, self.shared))


@dataclass(frozen=True)
class KernelList:
    """The kernels of a loop function.

    Attributes:
        kernels: Kernels in the order of their launches.
        workspace: Buffers in global memory that are neither inputs nor outputs.
    """

    kernels: tuple[Kernel, ...]
    workspace: tuple[Buffer, ...]


def list_kernels(function: PrimFunc) -> KernelList:
    """Return the kernels of a verified loop function.

    Raises:
        CompileError: A statement stands outside of all kernels, or a kernel is too large to be launched.
    """
    kernels: list[Kernel] = []
    workspace: list[Buffer] = []
    _collect(function.body, kernels, workspace)
    for kernel in kernels:
        _check(kernel)
    return KernelList(tuple(kernels), tuple(workspace))


def _collect(statement: Statement, kernels: list[Kernel], workspace: list[Buffer]) -> None:
    match statement:
        case Block():
            for inner in statement.statements:
                _collect(inner, kernels, workspace)
        case Allocate():
            workspace.append(statement.buffer)
            _collect(statement.body, kernels, workspace)
        case For(kind=ForKind.BLOCK):
            kernels.append(kernel_of(statement))
        case _:
            raise CompileError(
                "a statement stands outside of the loops over blocks; expected kernels only",
                help="bind a loop of each stage to blockIdx.x and one to threadIdx.x",
            )


def kernel_of(loop: For) -> Kernel:
    """Return the kernel of a verified loop over blocks."""
    shared: list[Buffer] = []
    body = loop.body
    while not isinstance(body, For):
        if isinstance(body, Allocate):
            shared.append(body.buffer)
            body = body.body
        else:
            assert isinstance(body, Block), "a verified kernel is allocations around a loop over threads"
            (body,) = body.statements
    reads: dict[Buffer, None] = {}
    writes: dict[Buffer, None] = {}
    allocated = set(shared)
    for visit in walk(body):
        statement = visit.statement
        if visit.event is not Event.ENTER:
            continue
        if isinstance(statement, Allocate):
            allocated.add(statement.buffer)
        for root in scalars(statement):
            loads = (part for part, _ in scalar_post_order(root) if isinstance(part, Load))
            reads.update(dict.fromkeys(load.buffer for load in loads))
        if isinstance(statement, Store):
            writes[statement.buffer] = None
    return Kernel(
        loop,
        body,
        tuple(shared),
        tuple(buffer for buffer in reads if buffer not in allocated),
        tuple(buffer for buffer in writes if buffer not in allocated),
    )


def _check(kernel: Kernel) -> None:
    blocks = kernel.block_loop
    limits = (
        (kernel.thread_loop.extent, MOST_THREADS, "threads in a block"),
        (blocks.extent if blocks.count is None else 0, MOST_BLOCKS, "blocks"),
        (kernel.shared_bytes, MOST_SHARED_BYTES, "bytes of shared memory"),
    )
    for number, most, unit in limits:
        if number > most:
            raise CompileError(f"a kernel has {number} {unit}; expected at most {most}")


def aligned_bytes(buffer: Buffer) -> int:
    """Return the size of a shared buffer in bytes, with what aligns the next one."""
    assert buffer.scope is MemoryScope.SHARED, "others have no memory in the block"
    size = max(1, prod(buffer.shape)) * stored_bytes(buffer.dtype)
    return -(-size // SHARED_ALIGNMENT) * SHARED_ALIGNMENT
