"""A kernel for batches of any size, which are run as several of the sizes that it has code for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.kernel import AddressSeries, Array, KernelSource, Value
from intarsia.support.array_address import array_address
from intarsia.support.errors import ExecutionError
from intarsia.toolchain.native.batches.batched_blob import BatchedRegions, write_batched_blob
from intarsia.toolchain.native.batches.batched_profiler import BatchedProfiler, RunKernel
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.region import NativeRegion, RegionConstant, RegionPort

if TYPE_CHECKING:
    from intarsia.toolchain.native.profiler import DescribeCalls

_FEW_PARTS: Final = 3
"""Up to so many parts are run one by one: the table of calls for all of them takes longer to make than to run
them (70 us, and 15 us for each part)."""


class BatchedKernel:
    """Kernels for batches of a few sizes, which together run a batch of any size.

    A batch of 23 items is run as 16, 4, 1, 1 and 1 of them: items are computed by themselves, and lie one
    behind another, so that each part is an array of its own without a copy.

    Args:
        source: Source with a batch of any size.
        batched: Compiled kernels by size of the batch.
        describe: Function that describes the kernels of a region for a profile.
        kernels: Kernels by size of the batch that are loaded already; loaded here if not given.
    """

    def __init__(
        self,
        source: KernelSource,
        batched: BatchedRegions,
        describe: DescribeCalls,
        kernels: Mapping[int, NativeKernel] | None = None,
    ) -> None:
        self.source = source
        self._describe = describe
        self.carrying = batched.carrying
        self._regions: Mapping[int, NativeRegion] | None = share_constants(batched.regions)
        self._kernels = kernels or {
            size: NativeKernel(source, region, describe)
            for size, region in sorted(self.regions.items(), reverse=True)
        }

    @property
    def regions(self) -> Mapping[int, NativeRegion]:
        """The compiled kernels by size of the batch; empty after `close`."""
        return self._regions or {}

    @property
    def named_architecture(self) -> str | None:
        """As `CrossCompiledKernel.named_architecture`."""
        return self._kernels[1].named_architecture

    def blob(self) -> bytes | None:
        """The compiled form, as `NativeKernel.blob`."""
        return write_batched_blob(BatchedRegions(self.carrying, self.regions))

    def close(self) -> None:
        """Let go of code, arenas and weights."""
        for kernel in self._kernels.values():
            kernel.close()
        self._regions = None

    def clones(self, count: int, threads: int | None = None) -> Sequence[BatchedKernel]:
        """As `ClonableKernel.clones`, with those of the kernel of each size.

        Raises:
            CompileError: There is not as much memory as the arenas need.
            UsageError: The kernel is closed.
        """
        sets = {size: kernel.clones(count, threads) for size, kernel in self._kernels.items()}
        regions = self.regions
        if threads is not None:
            regions = {size: replace(region, threads=threads) for size, region in regions.items()}
        source, batched = source_on_threads(self.source, threads), BatchedRegions(self.carrying, regions)
        return [
            BatchedKernel(
                source, batched, self._describe, {size: kernels[index] for size, kernels in sets.items()}
            )
            for index in range(count)
        ]

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`, for any number of items.

        Raises:
            ExecutionError: An array does not fit, or two have different numbers of items.
        """
        exact = self._kernels.get(self._count_items(inputs))
        if exact is not None:
            return exact.run(inputs, outputs)
        results = self._results(inputs, outputs)
        start = 0
        for size, count in split_batch(self._count_items(inputs), tuple(self._kernels)):
            if count <= _FEW_PARTS or not self._repeat(size, start, count, inputs, results):
                self._run_each(size, start, count, inputs, results, self._kernels[size].run)
            start += size * count
        return list(results)

    def run_apart(
        self, inputs: Sequence[Value], outputs: Sequence[Array | None], run: Callable[[int], RunKernel]
    ) -> list[Value]:
        """As `run`, with another function in place of the kernel of each size.

        Args:
            inputs: Inputs, as in `run`.
            outputs: Memory for results, as in `run`.
            run: Returns the function that runs a part of a size.
        """
        results = self._results(inputs, outputs)
        start = 0
        for size, count in split_batch(self._count_items(inputs), tuple(self._kernels)):
            self._run_each(size, start, count, inputs, results, run(size))
            start += size * count
        return list(results)

    def start_profiler(self) -> BatchedProfiler[int]:
        """As `ProfilableKernel.start_profiler`: a profiler for each size, and which of them ran.

        Raises:
            UsageError: The kernel is closed.
        """
        return BatchedProfiler(
            self.run_apart, {size: kernel.start_profiler() for size, kernel in self._kernels.items()}
        )

    def _results(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Array]:
        items = self._count_items(inputs)
        return [
            np.empty((items * port.shape[0], *port.shape[1:]), port.dtype) if given is None else given
            for given, port in zip(outputs, self._kernels[1].results, strict=True)
        ]

    def _count_items(self, inputs: Sequence[Value]) -> int:
        """Return the number of items, which all parameters that carry the batch have."""
        counts = {
            value.shape[0]
            for value, carries in zip(inputs, self.carrying, strict=True)
            if carries and isinstance(value, np.ndarray) and value.ndim
        }
        if len(counts) != 1:
            raise ExecutionError(f"the parameters have batches of {sorted(counts)} items, expected one size")
        return int(counts.pop())

    def _repeat(
        self, size: int, start: int, count: int, inputs: Sequence[Value], results: Sequence[Array]
    ) -> bool:
        """Run `count` parts of `size` items each, from an item on, in one call; False if that cannot be."""
        kernel = self._kernels[size]
        if kernel.repeated_results() is None:
            return False
        given = [
            _series(value, port, start * carries, size * carries, count)
            for value, port, carries in zip(inputs, kernel.params, self.carrying, strict=True)
        ]
        written = [
            _series(result, port, start, size, count)
            for result, port in zip(results, kernel.results, strict=True)
        ]
        kernel.repeat(count, given, written)
        return True

    def _run_each(
        self,
        size: int,
        start: int,
        count: int,
        inputs: Sequence[Value],
        results: Sequence[Array],
        run: RunKernel,
    ) -> None:
        """Run `count` parts of `size` items each, from an item on, one by one."""
        rows_per_item = [port.shape[0] for port in self._kernels[1].results]
        for first in range(start, start + size * count, size):
            parts = [
                _part(value, first, size) if carries else value
                for value, carries in zip(inputs, self.carrying, strict=True)
            ]
            written = [
                result[first * rows : (first + size) * rows]
                for result, rows in zip(results, rows_per_item, strict=True)
            ]
            run(parts, written)


def split_batch(items: int, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield how many parts of which size a batch is run as.

    Args:
        items: Number of items.
        sizes: Sizes, descending; the last one is 1.
    """
    for size in sizes:
        count, items = divmod(items, size)
        if count:
            yield size, count


def share_constants(regions: Mapping[int, NativeRegion]) -> dict[int, NativeRegion]:
    """Return regions that share the memory of constants that are the same weight in the same packing."""
    shared: dict[object, Array] = {}

    def first_of(constant: RegionConstant) -> RegionConstant:
        if constant.weight is None:
            return constant
        array = shared.setdefault((constant.weight, constant.packing), constant.array)
        return constant if array is constant.array else replace(constant, array=array)

    return {
        size: replace(region, constants=tuple(map(first_of, region.constants)))
        for size, region in regions.items()
    }


def _part(value: Value, first: int, size: int) -> Value:
    assert isinstance(value, np.ndarray)
    return value[first : first + size]


def _series(value: Value, port: RegionPort, start: int, step: int, count: int) -> AddressSeries:
    """Return where the parts of an array lie.

    Args:
        value: The whole array, C-contiguous.
        port: Name, shape and type of a part.
        start: Item of the first part.
        step: Items from one part to the next; 0 for an array that all parts read.
        count: Number of parts.

    Raises:
        ExecutionError: The array does not fit.
    """
    if not isinstance(value, np.ndarray) or value.shape[1:] != port.shape[1:] or value.dtype != port.dtype:
        raise ExecutionError(f"{port.name!r} does not fit {port.dtype} {port.shape}")
    item_bytes = port.nbytes // max(step, 1)
    base = array_address(value) + start * item_bytes
    addresses = base + np.arange(count, dtype=np.int64) * (step * item_bytes)
    rows = port.shape[0] if step else value.shape[0] if value.ndim else 0
    example = value[:rows] if value.ndim and step else value
    assert math.prod(example.shape) * value.itemsize == port.nbytes
    return AddressSeries(example, addresses)
