"""A kernel for images of any size, whose code reads their height and width."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from intarsia.native.execution.call_table import BufferRef, CallTable, FixedAddress, KernelCall, Slot
from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.filled_table import TableFiller
from intarsia.native.execution.native_function import NativeFunction
from intarsia.runtime.kernel import KernelSource, Value
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.array_address import array_address
from intarsia.support.errors import ExecutionError
from intarsia.support.growing_memory import GrowingMemory
from intarsia.toolchain.native.images.image_region import ImageRegion, write_image_blob
from intarsia.toolchain.native.images.image_sizes import ImageSizes
from intarsia.toolchain.native.images.sized_kernels import SizedKernels
from intarsia.toolchain.native.kernel import NativeKernel, shared_pool
from intarsia.toolchain.native.region import Argument, ArgumentKind, NativeRegion
from intarsia.toolchain.native.region_table import grow_arena, load_functions
from intarsia.toolchain.native.result_arrays import ResultArrays

if TYPE_CHECKING:
    from intarsia.toolchain.native.profiler import DescribeCalls

_MULTIPLES: Final = (1, 32)
"""A network that halves images may not have the end of a range as a size, but the next multiple below it."""


class ImageKernel(SizedKernels):
    """A region for images of any size, with a table of calls for each size that was met.

    Code, constants and the arena are those of all tables. The arena grows to the largest images.

    Args:
        source: Source with height or width of any size.
        whole: Compiled region.
        describe: Function that describes the kernels of a region for a profile.

    Raises:
        ArtifactError: The region's code is damaged, or uses what this machine has not.
    """

    def __init__(self, source: KernelSource, whole: ImageRegion, describe: DescribeCalls) -> None:
        super().__init__(source, len(whole.results))
        self._describe = describe
        self._whole: ImageRegion | None = whole
        ports = len(whole.params) + len(whole.results)
        filler = TableFiller(_table(whole, load_functions(whole.region), ports), ports)
        self._tables: tuple[ImageSizes, TableFiller] | None = ImageSizes(whole), filler
        process_driver(whole.region.driver)
        shared_pool(whole.region.threads)
        self._arena = GrowingMemory()

    def blob(self) -> bytes | None:
        """The compiled form, as `NativeKernel.blob`."""
        return write_image_blob(self._opened(self._whole))

    def close(self) -> None:
        """Let go of code, arena and weights."""
        self._forget()
        self._whole = self._tables = None  # they refer to code and weights
        self._arena = GrowingMemory()
        self._results = ResultArrays(())

    def expect_largest(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """As `GrowingKernel.expect_largest`."""
        whole, (evaluated, _) = self._opened(self._whole), self._opened(self._tables)
        for multiple in _MULTIPLES:
            with contextlib.suppress(ExecutionError):  # no call has such sizes
                sizes = [max(1, size // multiple * multiple) for size in whole.sizes_of(shapes)]
                images = evaluated.at(sizes)
                if self._arena.expect_largest(images.arena_bytes):
                    self._forget()
                self._results.expect_largest(images.region.results)
                return

    def _region(self) -> NativeRegion:
        return self._opened(self._whole).region

    def _sizes(self, inputs: Sequence[Value]) -> tuple[int, ...]:
        """Return the sizes of a call.

        Raises:
            ExecutionError: Arrays have different ones, or too few axes.
        """
        whole = self._opened(self._whole)
        shapes = []
        for value, dims in zip(inputs, whole.params, strict=True):
            if not isinstance(value, np.ndarray) or value.ndim != len(dims):
                raise ExecutionError(f"a parameter needs an array of {len(dims)} axes")
            shapes.append(value.shape)
        return whole.sizes_of(shapes)

    def _made(self, sizes: tuple[int, ...]) -> NativeKernel:
        """Return the kernel for given sizes."""
        evaluated, filler = self._opened(self._tables)
        images = evaluated.at(sizes)
        if grow_arena(self._arena, images.arena_bytes):
            self._forget()  # their tables refer to the memory before
        numbers, arena = images.numbers, self._arena.array
        addresses = np.concatenate(
            (
                array_address(numbers) + np.arange(len(numbers)) * numbers.itemsize,
                array_address(arena) + images.offsets,
            )
        )
        table = filler.filled(addresses, (numbers, arena))
        return NativeKernel(self.source, images.region, self._describe, table=table)


def _table(whole: ImageRegion, functions: Sequence[NativeFunction], ports: int) -> CallTable:
    """Return the calls, with slots for parameters and results, then numbers, then places in the arena."""
    region, count = whole.region, len(whole.numbers)
    addresses = [
        FixedAddress(array_address(constant.array), constant.array) for constant in region.constants[count:]
    ]

    def buffer(argument: Argument) -> BufferRef:
        match argument.kind:
            case ArgumentKind.CONSTANT if argument.number >= count:
                return addresses[argument.number - count]
            case ArgumentKind.CONSTANT:
                return Slot(ports + argument.number)
            case ArgumentKind.SLOT:
                return Slot(argument.number)
            case ArgumentKind.ARENA:
                return Slot(ports + count + argument.number // ALIGNMENT)

    return CallTable(
        tuple(KernelCall(functions[call.kernel], tuple(map(buffer, call.arguments))) for call in region.calls)
    )
