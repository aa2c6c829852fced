"""Programs of GPU kernels for any number of items, and the program that they are for given sizes.

Code and constants are the same for all sizes. Offsets in the arena, grids, and sizes of parameters and
results are proportional to numbers of items, or to those of tiles of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from intarsia.native.execution.item_kind import NUMBER_OF, ItemKind
from intarsia.native.gpu.kernel_list import MOST_BLOCKS
from intarsia.native.gpu.kernels_of_items import Tiling
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.errors import ExecutionError
from intarsia.toolchain.native.batches.item_region import ItemRegion
from intarsia.toolchain.native.gpu.gpu_program import GpuLaunch, GpuProgram
from intarsia.toolchain.native.region import Argument, ArgumentKind

Sizes = tuple[int, ...]
"""The size of a batch; or the number of texts, that of the tokens of each, and that of past tokens."""


@dataclass(frozen=True, slots=True)
class ItemLaunch:
    """A launch whose grid depends on a number of items.

    Attributes:
        launch: The launch for one tile of rows; offsets of its workspace are in bytes for each tile.
        number: Position of the number of items (`NUMBER_OF`) that its rows are a multiple of.
        tiling: Division of the rows of items into tiles.
        is_counted: Whether each tile has blocks of its own; else the grid is the same for all numbers.
        workspace: For each of its arguments whether it is a buffer of the kernels' own.
    """

    launch: GpuLaunch
    number: int
    tiling: Tiling
    is_counted: bool
    workspace: tuple[bool, ...]

    def of_items(self, items: int, memory: ItemMemory) -> GpuLaunch | None:
        """Return the launch for a number of items; None if there is nothing to compute.

        Args:
            items: Number of items.
            memory: Layout of the arena.

        Raises:
            ExecutionError: A grid has too many blocks.
        """
        tiles = self.tiling.tiles(items)
        blocks = self.launch.blocks * (tiles if self.is_counted else 1)
        if blocks > MOST_BLOCKS:
            raise ExecutionError(f"{items} items need {blocks} blocks; expected at most {MOST_BLOCKS}")
        arguments = [
            replace(argument, number=memory.workspace + argument.number * tiles)
            if is_workspace
            else memory.argument(argument)
            for argument, is_workspace in zip(self.launch.arguments, self.workspace, strict=True)
        ]
        return replace(self.launch, blocks=blocks, arguments=tuple(arguments)) if blocks else None


@dataclass(frozen=True, slots=True)
class ItemMemory:
    """The arena for given sizes: values, those that grow with the past, and the kernels' own memory.

    Attributes:
        items: Most items of a value in the first part.
        long_begin: Offset of a value for one item from which on values have an item for each key.
        long_part: Offset of the second part.
        keys: Number of items of a value there.
        workspace: Offset of the kernels' own memory.
    """

    items: int
    long_begin: int
    long_part: int
    keys: int
    workspace: int

    def argument(self, argument: Argument) -> Argument:
        """Return where an argument is, given where it is for one item."""
        if argument.kind is not ArgumentKind.ARENA:
            return argument
        if argument.number < self.long_begin:
            return replace(argument, number=argument.number * self.items)
        return replace(argument, number=self.long_part + (argument.number - self.long_begin) * self.keys)


@dataclass(frozen=True, eq=False)
class ItemProgram:
    """Kernels of a source for any number of items.

    Attributes:
        of_one: The program for one item, but for its launches and without the kernels' own memory; its first
            constants are the numbers of items of each kind.
        region: Sizes of its parameters and results; it has neither code nor calls.
        launches: Launches in order.
        workspace_bytes: Bytes of the kernels' own memory for each tile, by number of items and division of
            rows into tiles.
    """

    of_one: GpuProgram
    region: ItemRegion
    launches: tuple[ItemLaunch, ...]
    workspace_bytes: Mapping[tuple[int, Tiling], int]

    @property
    def single(self) -> GpuProgram:
        """The program for sizes of 1, each of whose kernels is launched."""
        return self._of((1,) * len(self.region.limits))

    def sizes_of(self, shapes: Sequence[tuple[int, ...]]) -> Sizes:
        """Return the sizes that parameters of given shapes have.

        Raises:
            ExecutionError: Two of them have different ones, or there are too many items.
        """
        if len(shapes) != len(self.region.axes):
            raise ExecutionError(f"found {len(shapes)} inputs; expected {len(self.region.axes)}")
        sizes = self.region.sizes_of(shapes)
        self.region.check_sizes(sizes)
        return sizes

    def of_sizes(self, sizes: Sizes) -> GpuProgram:
        """Return the program for given sizes.

        Raises:
            ExecutionError: They are out of range, or a grid has too many blocks.
        """
        self.region.check_sizes(sizes)
        return self._of(sizes)

    def _of(self, sizes: Sizes) -> GpuProgram:
        counts = self.region.counts(sizes)
        memory, ports = self._memory(sizes, counts), self.region.of_sizes(sizes)
        launches = (launch.of_items(counts[launch.number], memory) for launch in self.launches)
        extra = max(
            (size * tiling.tiles(counts[number]) for (number, tiling), size in self.workspace_bytes.items()),
            default=0,
        )
        numbers = [
            replace(constant, array=np.full((), count, np.int64))
            for constant, count in zip(self.of_one.constants[: len(counts)], counts, strict=True)
        ]
        return replace(
            self.of_one,
            launches=tuple(launch for launch in launches if launch is not None),
            constants=(*numbers, *self.of_one.constants[len(counts) :]),
            params=ports.params,
            results=ports.results,
            copies=tuple((position, memory.argument(origin)) for position, origin in self.of_one.copies),
            arena_bytes=memory.workspace + extra,
        )

    def _memory(self, sizes: Sizes, counts: tuple[int, ...]) -> ItemMemory:
        region = self.region
        short = _aligned(region.arena_bytes(sizes))
        keys = counts[NUMBER_OF[ItemKind.KEYS]]
        items = region.arena_bytes(sizes) // region.long_begin if region.long_begin else 0
        return ItemMemory(items, region.long_begin, short, keys, short + _aligned(region.long_bytes(keys)))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
