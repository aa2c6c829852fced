"""Shared tiles with padding behind each row, so that fewer of the rows that a warp reads lie in one bank."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import Allocate, Block, Buffer, For, Mma, Statement
from intarsia.ir.warp import MMA_ROW_ALIGNMENT
from intarsia.native.gpu.kernel_list import DECLARED_SHARED_BYTES, MOST_SHARED_BYTES, kernel_of
from intarsia.native.gpu.memory_accesses import memory_accesses
from intarsia.native.tir.rewriting import Indices, Replacement, block, flat, with_body, with_kernels

_MOST_UNITS: Final = 2
"""Maximum padding in units of what is written at once, so that it stays aligned."""


def with_padded_tiles(function: PrimFunc) -> PrimFunc:
    """Return a loop function whose kernels have the padding of shared tiles that costs the fewest turns.

    A tile whose accesses have no conflicts stays as it is, and so does one whose padding has no room.
    """
    return with_kernels(function, _padded)


def _padded(loop: For) -> For:
    for buffer in kernel_of(loop).shared:
        if len(buffer.shape) > 1:
            loop = _with_padding(loop, buffer)
    return loop


def _with_padding(loop: For, buffer: Buffer) -> For:
    """Return a loop over blocks with the least padding behind rows of a buffer that saves the most turns."""
    turns, least = _turns(loop, buffer)
    best, unit = loop, _written_at_once(loop, buffer)
    for count in range(1, _MOST_UNITS + 1):
        if turns == least:
            break
        wide = replace(buffer, shape=(*buffer.shape[:-1], buffer.shape[-1] + count * unit))
        candidate = _with_buffer(loop, buffer, wide)
        fewer, _ = _turns(candidate, wide)
        if fewer < turns and _is_small_enough(loop, candidate):
            best, turns = candidate, fewer
    return best


def _is_small_enough(before: For, after: For) -> bool:
    """Return whether padding fits into what kernels declare, or a block where they ask for more anyway."""
    sizes = kernel_of(before).shared_bytes, kernel_of(after).shared_bytes
    return sizes[1] <= (DECLARED_SHARED_BYTES if sizes[0] <= DECLARED_SHARED_BYTES else MOST_SHARED_BYTES)


def _turns(loop: For, buffer: Buffer) -> tuple[int, int]:
    """Return the turns that all accesses to a buffer take, and those that they would take at least."""
    accesses = memory_accesses(kernel_of(loop), (buffer,))
    turns = sum(access.units * access.count for access in accesses)
    return turns, sum(access.least_units * access.count for access in accesses)


def _written_at_once(loop: For, buffer: Buffer) -> int:
    """Return the most elements of a buffer that an access writes, or that a product aligns rows to."""
    accesses = memory_accesses(kernel_of(loop), (buffer,))
    size = buffer.dtype.numpy.itemsize
    written = [access.bytes_of_thread for access in accesses if access.is_store]
    products = (visit.statement for visit in walk(loop) if isinstance(visit.statement, Mma))
    if any(buffer in (product.left.buffer, product.right.buffer) for product in products):
        written.append(MMA_ROW_ALIGNMENT)
    return max(1, max(written, default=1) // size)


def _with_buffer(loop: For, before: Buffer, after: Buffer) -> For:
    """Return a loop over blocks with another buffer in place of a shared one."""

    def element(indices: Indices) -> tuple[Buffer, Indices]:
        return after, indices

    replacement = Replacement(accesses={before: element})

    def inside(statement: Statement) -> Statement:
        match statement:
            case Allocate(buffer=buffer) if buffer == before:
                return Allocate(after, replacement.statement(statement.body))
            case Allocate():
                return with_body(statement, inside(statement.body))
            case Block():
                return block([inside(inner) for inner in flat(statement)])
            case _:
                return statement

    changed = with_body(loop, inside(loop.body))
    assert isinstance(changed, For)
    return changed
