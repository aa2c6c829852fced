"""A kernel for batches of any size, whose code reads the number of items."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from intarsia.native.execution.call_table import BufferRef, CallTable, FixedAddress, KernelCall, Slot
from intarsia.native.execution.native_function import NativeFunction
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.array_address import array_address
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.toolchain.native.batches.batched_profiler import BatchedProfiler, RunKernel
from intarsia.toolchain.native.batches.item_region import ItemRegion, write_item_blob
from intarsia.toolchain.native.foreign_kernel import named_architecture
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.region import Argument, ArgumentKind, NativeRegion
from intarsia.toolchain.native.region_table import allocate_arena, load_functions

if TYPE_CHECKING:
    from intarsia.toolchain.native.profiler import DescribeCalls, NativeProfiler

_MOST_SIZES: Final = 64
"""Numbers of items whose tables of calls are kept; one has a few KiB, and is made in a millisecond."""


class ItemKernel:
    """A region for any number of items, with a table of calls for each number that was met.

    Code, constants and the arena are those of all tables. The arena grows to the largest number of items.

    Args:
        source: Source with a batch of any size.
        region: Compiled region.
        describe: Function that describes the kernels of a region for a profile.

    Raises:
        ArtifactError: The region's code is damaged, or uses what this machine has not.
    """

    def __init__(self, source: KernelSource, region: ItemRegion, describe: DescribeCalls) -> None:
        self.source = source
        self._describe = describe
        self._region: ItemRegion | None = region
        self._functions: tuple[NativeFunction, ...] = load_functions(region.region)
        self._arena = allocate_arena(0)
        self._kernels: OrderedDict[int, NativeKernel] = OrderedDict()

    @property
    def named_architecture(self) -> str | None:
        """As `CrossCompiledKernel.named_architecture`."""
        return named_architecture(self.source, self._open_region().region.isa)

    def blob(self) -> bytes | None:
        """The compiled form, as `NativeKernel.blob`."""
        return write_item_blob(self._open_region())

    def close(self) -> None:
        """Let go of code, arena and weights."""
        for kernel in self._kernels.values():
            kernel.close()
        self._kernels.clear()
        self._region, self._functions, self._arena = None, (), allocate_arena(0)

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`, for any number of items.

        Raises:
            ExecutionError: An array does not fit, or two have different numbers of items.
        """
        return self._kernel(self._count_items(inputs)).run(inputs, outputs)

    def bind(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> Callable[[], None] | None:
        """As `BindableKernel.bind`.

        Raises:
            ExecutionError: An array does not fit, or two have different numbers of items.
        """
        return self._kernel(self._count_items(inputs)).bind(inputs, outputs)

    def start_profiler(self) -> BatchedProfiler:
        """As `ProfilableKernel.start_profiler`: a profiler for each number of items.

        Raises:
            UsageError: The kernel is closed.
        """
        self._open_region()
        return BatchedProfiler(self._run_apart, _Profilers(self._profiler))

    def _profiler(self, items: int) -> NativeProfiler:
        return copy.copy(self._kernel(items)).start_profiler()

    def _run_apart(
        self, inputs: Sequence[Value], outputs: Sequence[Array | None], run: Callable[[int], RunKernel]
    ) -> list[Value]:
        items = self._count_items(inputs)
        ports = self._kernel(items).results
        results = [
            np.empty(port.shape, port.dtype) if given is None else given
            for given, port in zip(outputs, ports, strict=True)
        ]
        return run(items)(inputs, results)

    def _kernel(self, items: int) -> NativeKernel:
        """Return the kernel for a number of items, which is made when it is met first."""
        kernel = self._kernels.get(items)
        if kernel is not None:
            self._kernels.move_to_end(items)
            return kernel
        whole = self._open_region()
        if items > whole.most_items:
            raise ExecutionError(f"native runs up to {whole.most_items} items here, found {items}")
        region = whole.of_items(items)
        if region.arena_bytes > self._arena.nbytes:
            self._kernels.clear()  # their tables refer to the smaller arena
            self._arena = allocate_arena(region.arena_bytes)
        table = _table(region, items, self._functions, self._arena)
        kernel = self._kernels[items] = NativeKernel(self.source, region, self._describe, table=table)
        if len(self._kernels) > _MOST_SIZES:
            self._kernels.popitem(last=False)
        return kernel

    def _count_items(self, inputs: Sequence[Value]) -> int:
        """Return the number of items, which all parameters that carry the batch have.

        Raises:
            ExecutionError: They have different numbers.
        """
        whole = self._open_region()
        counts = {
            value.shape[axis]
            for value, axis in zip(inputs, whole.axes, strict=True)
            if axis is not None and isinstance(value, np.ndarray) and value.ndim > axis
        }
        if len(counts) != 1:
            raise ExecutionError(f"the parameters have batches of {sorted(counts)} items, expected one size")
        return int(counts.pop())

    def _open_region(self) -> ItemRegion:
        if self._region is None:
            raise UsageError("the kernel is closed")
        return self._region


class _Profilers(dict[int, "NativeProfiler"]):
    """Profilers by number of items, each made when it is needed first."""

    def __init__(self, start: Callable[[int], NativeProfiler]) -> None:
        super().__init__()
        self._start = start

    def __missing__(self, items: int) -> NativeProfiler:
        profiler = self[items] = self._start(items)
        return profiler


def _table(region: NativeRegion, items: int, functions: Sequence[NativeFunction], arena: Array) -> CallTable:
    """Return the calls for a number of items, with the caller's arrays in slots."""
    begin = array_address(arena)
    number = np.full((), items, np.int64)
    constants = [number, *(constant.array for constant in region.constants[1:])]
    addresses = [FixedAddress(array_address(array), array) for array in constants]

    def buffer(argument: Argument) -> BufferRef:
        match argument.kind:
            case ArgumentKind.SLOT:
                return Slot(argument.number)
            case ArgumentKind.CONSTANT:
                return addresses[argument.number]
            case ArgumentKind.ARENA:
                return FixedAddress(begin + argument.number * items, arena)

    return CallTable(
        tuple(KernelCall(functions[call.kernel], tuple(map(buffer, call.arguments))) for call in region.calls)
    )
