"""A program for any number of items in the memory of a GPU: its weights are uploaded once for all numbers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from intarsia.native.execution.item_kind import NUMBER_OF
from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.support.errors import UsageError
from intarsia.toolchain.native.gpu.item_program import ItemProgram, Sizes
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram

_MOST_SIZES: Final = 16
"""Sizes whose launches are kept, with what was recorded of them."""


class LoadedItems:
    """A program for any number of items on a GPU, with its launches for the numbers that were met.

    Code, constants and the arena are those of all numbers. The arena grows to the largest one.

    Args:
        context: The GPU.
        program: The program; its code must be for this GPU or an earlier one.

    Raises:
        MemoryError: The GPU has not as much memory.
        ExecutionError: The driver refuses the code.
    """

    def __init__(self, context: CudaContext, program: ItemProgram) -> None:
        self._program, self._context = program, context
        self._one: LoadedProgram | None = LoadedProgram(context, program.single)
        self._arena: int | None = None
        self._arena_bytes = 0
        self._sizes: OrderedDict[Sizes, LoadedProgram] = OrderedDict()

    def for_shapes(self, shapes: Sequence[tuple[int, ...]]) -> LoadedProgram:
        """Return the program that runs parameters of given shapes.

        Raises:
            ExecutionError: They have different sizes, or too many items.
            MemoryError: The GPU has not as much memory.
            UsageError: The program is closed.
        """
        if self._one is None:
            raise UsageError("this program is closed")
        sizes = self._program.sizes_of(shapes)
        if sizes in self._sizes:
            self._sizes.move_to_end(sizes)
            return self._sizes[sizes]
        program = self._program.of_sizes(sizes)
        arena = self._arena_of(program.arena_bytes)
        parts = self._one.shared_parts(arena, len(NUMBER_OF))
        loaded = self._sizes[sizes] = LoadedProgram(self._context, program, parts)
        if len(self._sizes) > _MOST_SIZES:
            self._context.synchronize()  # its kernels may be under way
            self._sizes.popitem(last=False)[1].close()
        return loaded

    def close(self) -> None:
        """Free the program's memory on the GPU; nothing remains to be done once the GPU is closed."""
        self._forget_sizes()
        single, self._one = self._one, None
        if single is not None:
            single.close()

    def _arena_of(self, size: int) -> int:
        """Return the address of an arena of a size at least."""
        if self._arena is None or size > self._arena_bytes:
            if self._arena is not None:
                self._context.synchronize()  # kernels that write the smaller one may be under way
            self._forget_sizes()
            self._arena, self._arena_bytes = self._allocated(size, 2 * self._arena_bytes)
        return self._arena

    def _allocated(self, size: int, wanted: int) -> tuple[int, int]:
        """Return memory of a size at least and how much it is: as much as is wanted, if there is as much.

        A decoder has another past at each step: its arena grows a few times only.
        """
        pool = self._context.pool
        if wanted > size:
            with suppress(MemoryError):
                return pool.allocate(wanted), wanted
        return pool.allocate(size), size

    def _forget_sizes(self) -> None:
        """Close the programs of all numbers of items, whose arguments are in the arena, and free that."""
        while self._sizes:
            self._sizes.popitem()[1].close()
        arena, self._arena = self._arena, None
        if arena is not None and not self._context.is_closed:
            self._context.pool.free(arena)
