"""An estimate of the registers of a GPU thread, before there is machine code."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import Allocate, Buffer, MemoryScope, Mma
from intarsia.native.emission.types import stored_bytes
from intarsia.native.gpu.kernel_list import Kernel

MOST_REGISTERS: Final = 255
"""Maximum number of registers of a thread; what it needs beyond is spilled to memory."""
REGISTER_BYTES: Final = 4
_ADDRESSES: Final = 24
"""Registers for addresses, counters and operands, roughly."""
_FRAGMENTS: Final = 32
"""Registers for the factors of products on tensor cores, roughly."""


def estimated_registers(kernel: Kernel) -> int:
    """Return how many registers a thread needs at least: for what it keeps, and for some addresses."""
    kept: dict[Buffer, None] = {}
    fragments = 0
    for visit in walk(kernel.thread_loop.body):
        if visit.event is not Event.ENTER:
            continue
        match visit.statement:
            case Allocate(buffer=buffer) if buffer.scope is MemoryScope.REGISTER:
                kept[buffer] = None
            case Mma():
                fragments = _FRAGMENTS
    size = sum(prod(buffer.shape) * max(REGISTER_BYTES, stored_bytes(buffer.dtype)) for buffer in kept)
    return _ADDRESSES + fragments + size // REGISTER_BYTES
