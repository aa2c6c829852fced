"""A kernel for batches and texts of any size, whose code reads the numbers of items."""

from __future__ import annotations

import contextlib
import copy
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from intarsia.native.execution.call_table import BufferRef, CallTable, FixedAddress, KernelCall, Slot
from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.filled_table import TableFiller
from intarsia.native.execution.item_kind import NUMBER_OF, ItemKind
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.array_address import array_address
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.support.growing_memory import GrowingMemory
from intarsia.toolchain.native.batches.batched_profiler import BatchedProfiler, RunKernel
from intarsia.toolchain.native.batches.item_region import ItemRegion, write_item_blob
from intarsia.toolchain.native.foreign_kernel import named_architecture
from intarsia.toolchain.native.kernel import NativeKernel, shared_pool
from intarsia.toolchain.native.region import Argument, ArgumentKind
from intarsia.toolchain.native.region_table import grow_arena, load_functions
from intarsia.toolchain.native.result_arrays import ResultArrays, ResultMaker, given_or_new

if TYPE_CHECKING:
    from intarsia.toolchain.native.profiler import DescribeCalls, NativeProfiler

_MOST_SIZES: Final = 64
"""Sizes whose tables of calls are kept; one has a few KiB, and is made in 0.3 ms."""
_SHARE_AHEAD: Final = 16
"""Arena and results begin with this part of the bytes of all weights each: memory grows by at most 12 %."""
_MOST_AHEAD: Final = 1 << 24
"""Bytes that each of both begins with at most: 900 tokens of BERT-base, results of 80 tokens of GPT-2."""


class ItemKernel:
    """A region for any number of items, with a table of calls for all sizes that were met.

    Code, constants and the arena are those of all tables. The arena grows to the largest number of items.

    Args:
        source: Source with dimensions of any size.
        region: Compiled region.
        describe: Function that describes the kernels of a region for a profile.
        functions: Kernels of the region that are loaded already; loaded here if not given.
        pool: Threads of its own; by default those of all kernels with as many threads on the same cores.

    Raises:
        ArtifactError: The region's code is damaged, or uses what this machine has not.
    """

    has_new_results = True

    def __init__(
        self,
        source: KernelSource,
        region: ItemRegion,
        describe: DescribeCalls,
        functions: tuple[NativeFunction, ...] | None = None,
        pool: ThreadPool | None = None,
    ) -> None:
        self.source, self._pool = source, pool
        self._describe = describe
        self._region: ItemRegion | None = region
        self._functions: tuple[NativeFunction, ...] = functions or load_functions(region.region)
        self._arena, self._long_arena = GrowingMemory(), GrowingMemory()
        self._arena.grow(_bytes_ahead(region, region.long_begin))
        self._results = ResultArrays(_results_ahead(region))
        self._frames: OrderedDict[tuple[int, ...], _SizedKernel] = OrderedDict()
        self._kernels: OrderedDict[tuple[int, ...], _SizedKernel] = OrderedDict()
        self._last_shapes: list[tuple[int, ...] | None] = [None]
        self._last_sizes: tuple[int, ...] = ()
        process_driver(region.region.driver)
        if pool is None:
            shared_pool(region.region.threads)
        self._calls: _ItemTable | None = _ItemTable(region, self._functions)

    @property
    def named_architecture(self) -> str | None:
        """As `CrossCompiledKernel.named_architecture`."""
        return named_architecture(self.source, self._open_region().region.isa)

    def blob(self) -> bytes | None:
        """The compiled form, as `NativeKernel.blob`."""
        return write_item_blob(self._open_region())

    def clones(self, count: int, threads: int | None = None) -> Sequence[ItemKernel]:
        """As `ClonableKernel.clones`: code and weights are shared, arenas are not.

        Raises:
            UsageError: The kernel is closed.
        """
        whole, source = self._open_region(), source_on_threads(self.source, threads)
        if threads is not None:
            whole = replace(whole, region=replace(whole.region, threads=threads))
        has_pool = threads is not None and threads > 1
        return [
            ItemKernel(
                source,
                whole,
                self._describe,
                self._functions,
                ThreadPool(whole.region.threads) if has_pool else None,
            )
            for _ in range(count)
        ]

    def close(self) -> None:
        """Let go of code, arena, weights and threads of its own."""
        if self._pool is not None:
            self._pool.close()
        for sized in (*self._kernels.values(), *self._frames.values()):
            sized.kernel.close()
        self._kernels.clear()
        self._frames.clear()
        self._region, self._functions, self._calls = None, (), None
        self._arena, self._long_arena = GrowingMemory(), GrowingMemory()
        self._results = ResultArrays(())

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`, for any number of items.

        Raises:
            ExecutionError: An array does not fit, or two have different numbers of items.
        """
        sized = self._prepared(self._sizes(inputs))
        return sized.kernel.run(inputs, given_or_new(outputs, sized.new_results))

    def bind(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> Callable[[], None] | None:
        """As `BindableKernel.bind`.

        Raises:
            ExecutionError: An array does not fit, or two have different numbers of items.
        """
        sized = self._kernel(self._sizes(inputs))
        run = sized.kernel.bind(inputs, outputs)
        if run is None or not self._open_region().has_past:
            return run

        def run_prepared() -> None:
            sized.prepare()
            run()

        return run_prepared

    def expect_largest(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """As `GrowingKernel.expect_largest`."""
        whole = self._open_region()
        with contextlib.suppress(ExecutionError):  # no call has such sizes
            sizes = whole.sizes_of(shapes)
            whole.check_sizes(sizes)
            keys = _room_of(whole.counts(sizes))
            moves = [
                self._arena.expect_largest(whole.arena_bytes(sizes)),
                self._long_arena.expect_largest(whole.long_bytes(keys)),
            ]
            if any(moves):
                self._forget_tables()
            self._results.expect_largest(whole.of_sizes(sizes).results)

    def start_profiler(self) -> BatchedProfiler[tuple[int, ...]]:
        """As `ProfilableKernel.start_profiler`: a profiler for all sizes that are met.

        Raises:
            UsageError: The kernel is closed.
        """
        self._open_region()
        return BatchedProfiler(self._run_apart, _Profilers(self._profiler))

    def _profiler(self, sizes: tuple[int, ...]) -> NativeProfiler:
        return copy.copy(self._kernel(sizes).kernel).start_profiler()

    def _run_apart(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Array | None],
        run: Callable[[tuple[int, ...]], RunKernel],
    ) -> list[Value]:
        sizes = self._sizes(inputs)
        return run(sizes)(inputs, given_or_new(outputs, self._prepared(sizes).new_results))

    def _prepared(self, sizes: tuple[int, ...]) -> _SizedKernel:
        """Return the kernel for given sizes, which its code reads."""
        sized = self._kernel(sizes)
        sized.prepare()
        return sized

    def _kernel(self, sizes: tuple[int, ...]) -> _SizedKernel:
        """Return the kernel for given sizes, which is made when they are met first."""
        sized = self._kernels.get(sizes)
        if sized is not None:
            self._kernels.move_to_end(sizes)
            return sized
        whole = self._open_region()
        whole.check_sizes(sizes)
        frame = self._frame(whole, sizes)
        kernel = frame.kernel.of_region(whole.of_sizes(sizes))
        makers = self._results.makers(kernel.results)
        sized = self._kernels[sizes] = _SizedKernel(kernel, frame.numbers, whole.counts(sizes), makers)
        if len(self._kernels) > _MOST_SIZES:
            self._kernels.popitem(last=False)
        return sized

    def _frame(self, whole: ItemRegion, sizes: tuple[int, ...]) -> _SizedKernel:
        """Return the kernel whose calls are those of given sizes, for any number of past tokens.

        A decoder is called with another number at each step: all of them share a table of calls, and have
        memory for the next power of two of keys.
        """
        counts = whole.counts(sizes)
        room = _room_of(counts)
        key = (*sizes[:-1], room) if whole.has_past else sizes
        frame = self._frames.get(key)
        if frame is not None:
            self._frames.move_to_end(key)
            return frame
        wanted, wanted_long = whole.arena_bytes(sizes), whole.long_bytes(room)
        if any((grow_arena(self._arena, wanted), grow_arena(self._long_arena, wanted_long))):
            self._forget_tables()
        numbers = _Numbers(counts)
        most = wanted // whole.long_begin if whole.long_begin else 0
        assert self._calls is not None
        table = self._calls.at(numbers.arrays, most, self._arena.array, room, self._long_arena.array)
        kernel = NativeKernel(self.source, whole.region, self._describe, pool=self._pool, table=table)
        frame = self._frames[key] = _SizedKernel(kernel, numbers, counts, ())
        if len(self._frames) > _MOST_SIZES:
            self._frames.popitem(last=False)
        return frame

    def _forget_tables(self) -> None:
        """Forget all tables: they refer to the memory before."""
        self._kernels.clear()
        self._frames.clear()

    def _sizes(self, inputs: Sequence[Value]) -> tuple[int, ...]:
        """Return the sizes of a call, of which all parameters that have one have the same.

        Raises:
            ExecutionError: They have different ones.
        """
        shapes = [value.shape if isinstance(value, np.ndarray) else None for value in inputs]
        if shapes != self._last_shapes:  # most calls have the shapes of the call before
            self._last_sizes = self._open_region().sizes_of(shapes)
            self._last_shapes = shapes
        return self._last_sizes

    def _open_region(self) -> ItemRegion:
        if self._region is None:
            raise UsageError("the kernel is closed")
        return self._region


class _Profilers(dict[tuple[int, ...], "NativeProfiler"]):
    """Profilers by sizes, each made when it is needed first."""

    def __init__(self, start: Callable[[tuple[int, ...]], NativeProfiler]) -> None:
        super().__init__()
        self._start = start

    def __missing__(self, sizes: tuple[int, ...]) -> NativeProfiler:
        profiler = self[sizes] = self._start(sizes)
        return profiler


@dataclass(frozen=True, slots=True)
class _SizedKernel:
    """A kernel for given sizes, which reads numbers from memory that other sizes may share.

    Attributes:
        kernel: The kernel.
        numbers: Memory of the number of items of each kind.
        counts: These numbers for its sizes.
        new_results: Functions that allocate each result.
    """

    kernel: NativeKernel
    numbers: _Numbers
    counts: tuple[int, ...]
    new_results: Sequence[ResultMaker]

    def prepare(self) -> None:
        """Write the numbers that the kernel reads."""
        if self.numbers.counts != self.counts:
            self.numbers.write(self.counts)


class _Numbers:
    """Memory of the number of items of each kind, which code reads.

    Attributes:
        arrays: The memory.
        counts: The numbers that are there.
    """

    __slots__ = ("arrays", "counts")

    def __init__(self, counts: tuple[int, ...]) -> None:
        self.arrays = tuple(np.full((), count, np.int64) for count in counts)
        self.counts = counts

    def write(self, counts: tuple[int, ...]) -> None:
        """Replace the numbers."""
        for array, count in zip(self.arrays, counts, strict=True):
            array[()] = count
        self.counts = counts


def _room_of(counts: Sequence[int]) -> int:
    """Return the number of keys that there is memory for: the next power of two."""
    return 1 << max(0, counts[NUMBER_OF[ItemKind.KEYS]] - 1).bit_length()


def _bytes_ahead(whole: ItemRegion, of_item: int) -> int:
    """Return the bytes of values that are there before a call: pages that are new cost up to 2 us each.

    Args:
        whole: The region.
        of_item: Bytes of these values for one item.
    """
    weights = sum(constant.array.nbytes for constant in whole.region.constants)
    return min(weights // _SHARE_AHEAD, _MOST_AHEAD, of_item * whole.limits[-1][1])


def _results_ahead(whole: ItemRegion) -> list[int]:
    """Return the bytes of each result that are there before a call."""
    ports = zip(whole.region.results, whole.result_axes, strict=True)
    of_item = [math.prod(port.shape) * port.dtype.itemsize if axes else 0 for port, axes in ports]
    items = _bytes_ahead(whole, sum(of_item)) // max(1, sum(of_item))
    return [size * items for size in of_item]


class _ItemTable:
    """The calls of a region, of which tables for numbers of items are made.

    Args:
        whole: The region.
        functions: Its kernels.
    """

    def __init__(self, whole: ItemRegion, functions: Sequence[NativeFunction]) -> None:
        region, count = whole.region, len(whole.numbers)
        ports = len(region.params) + len(region.results)
        arguments = [argument for call in region.calls for argument in call.arguments]
        offsets = sorted({item.number for item in arguments if item.kind is ArgumentKind.ARENA})
        slots = {offset: ports + count + at for at, offset in enumerate(offsets)}
        constants = [constant.array for constant in region.constants]
        addresses = [FixedAddress(array_address(array), array) for array in constants]

        def buffer(argument: Argument) -> BufferRef:
            match argument.kind:
                case ArgumentKind.SLOT:
                    return Slot(argument.number)
                case ArgumentKind.CONSTANT if argument.number < count:
                    return Slot(ports + argument.number)
                case ArgumentKind.CONSTANT:
                    return addresses[argument.number]
                case ArgumentKind.ARENA:
                    return Slot(slots[argument.number])

        calls = (
            KernelCall(functions[call.kernel], tuple(map(buffer, call.arguments))) for call in region.calls
        )
        self._filler = TableFiller(CallTable(tuple(calls)), ports)
        self._is_long = np.array([offset >= whole.long_begin for offset in offsets], np.bool_)
        self._offsets = np.array(offsets, np.int64) - self._is_long * whole.long_begin

    def at(
        self, numbers: Sequence[Array], items: int, arena: Array, keys: int, long_arena: Array
    ) -> CallTable:
        """Return the calls for numbers of items.

        Args:
            numbers: Memory of the number of items of each kind.
            items: Number of items that values in the arena have at most.
            arena: Memory of values whose size does not grow with the past.
            keys: Number of keys for which there is memory.
            long_arena: Memory of values with an item for each key.
        """
        begins = np.where(self._is_long, array_address(long_arena), array_address(arena))
        places = begins + self._offsets * np.where(self._is_long, keys, items)
        addresses = np.array([*map(array_address, numbers), *places.tolist()], np.int64)
        return self._filler.filled(addresses, (numbers, arena, long_arena))
