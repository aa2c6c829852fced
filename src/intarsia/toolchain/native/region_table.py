"""The calls of a region: its kernels loaded, with their arrays in the arena."""

from __future__ import annotations

import math
from collections.abc import Sequence

from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.execution.call_table import BufferRef, CallTable, KernelCall, Slot
from intarsia.native.execution.native_function import NativeFunction
from intarsia.runtime.kernel import Array
from intarsia.support.aligned_memory import allocate_aligned
from intarsia.support.growing_memory import GrowingMemory
from intarsia.toolchain.native.arena import too_large_arena
from intarsia.toolchain.native.libraries import library_symbols
from intarsia.toolchain.native.region import Argument, ArgumentKind, NativeRegion


def make_table(region: NativeRegion, functions: Sequence[NativeFunction]) -> CallTable:
    """The calls, with arrays of the arena, constants, and slots for the caller's arrays.

    Args:
        region: The region.
        functions: Its kernels.

    Raises:
        CompileError: There is not as much memory as the arena needs.
    """
    arena = allocate_arena(region.arena_bytes)

    def buffer(argument: Argument, parameter: ArrayParameter) -> BufferRef:
        match argument.kind:
            case ArgumentKind.SLOT:
                return Slot(argument.number)
            case ArgumentKind.CONSTANT:
                return region.constants[argument.number].array.reshape(parameter.shape)
            case ArgumentKind.ARENA:
                end = argument.number + math.prod(parameter.shape) * parameter.dtype.itemsize
                return arena[argument.number : end].view(parameter.dtype).reshape(parameter.shape)

    calls = []
    for call in region.calls:
        function = functions[call.kernel]
        given = zip(call.arguments, function.parameters, strict=True)
        calls.append(KernelCall(function, tuple(buffer(*pair) for pair in given)))
    return CallTable(tuple(calls))


def load_functions(region: NativeRegion) -> tuple[NativeFunction, ...]:
    """Load the kernels of a region.

    Raises:
        ArtifactError: Their code is damaged, or uses what this machine has not.
    """
    return tuple(
        NativeFunction.load(
            kernel.object_code,
            kernel.symbol,
            kernel.parameters,
            kernel.scratch_bytes,
            library_symbols(kernel.library),
        )
        for kernel in region.kernels
    )


def allocate_arena(size: int) -> Array:
    """Uninitialised memory for the values between kernels.

    Raises:
        CompileError: There is not so much.
    """
    try:
        return allocate_aligned(size)
    except MemoryError as error:
        raise too_large_arena(size) from error


def grow_arena(arena: GrowingMemory, size: int) -> bool:
    """As `GrowingMemory.grow`, for the values between kernels of a call; larger calls are expected.

    Raises:
        CompileError: There is not so much memory.
    """
    try:
        moves = arena.grow(size)
    except MemoryError as error:
        raise too_large_arena(size) from error
    arena.expect_growth()
    return moves
