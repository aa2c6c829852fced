"""What the toolchain native compiles to: a table of kernels with the caller's arrays in it.

Threads. All kernels with as many threads that are made on the same cores share one pool; its workers sleep
between runs. So each group of cores that a program's CPU devices have gets a pool of its own.
Memory. Values between kernels are in an arena of the kernel's own, so that it runs one call at a time.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.native.execution.call_table import CallTable
from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.execution.timed_table import SteppedTable, TimedTable
from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.devices.core_groups import CoreGroup, allowed_cores
from intarsia.runtime.kernel import AddressSeries, Array, KernelSource, Value
from intarsia.support.aligned_memory import allocate_aligned
from intarsia.support.array_address import array_address
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.toolchain.bound_memory import BoundMemory
from intarsia.toolchain.native.foreign_kernel import named_architecture
from intarsia.toolchain.native.region import ArgumentKind, NativeRegion, RegionPort
from intarsia.toolchain.native.region_table import load_functions, make_table

if TYPE_CHECKING:
    from intarsia.toolchain.native.profiler import DescribeCalls, NativeProfiler


class NativeKernel:
    """A region in memory, bound to the arrays of the last call.

    Args:
        source: Source of the region.
        region: The region.
        describe: Function that describes the region's kernels for a profile.
        functions: Kernels of the region that are loaded already; loaded here if not given.
        pool: Threads of its own; by default those of all kernels with as many threads on the same cores.
        table: The region's calls, if they are made already.

    Raises:
        ArtifactError: The region's code is damaged, or uses what this machine has not.
        CompileError: There is not as much memory as its arena needs.
    """

    def __init__(
        self,
        source: KernelSource,
        region: NativeRegion,
        describe: DescribeCalls,
        functions: Sequence[NativeFunction] | None = None,
        pool: ThreadPool | None = None,
        table: CallTable | None = None,
    ) -> None:
        self.source = source
        self._describe = describe
        process_driver(region.driver)
        self._region: NativeRegion | None = region
        self._ports = (*region.params, *region.results)
        self._functions: Sequence[NativeFunction] = ()
        if table is None:
            self._functions = load_functions(region) if functions is None else functions
            table = make_table(region, self._functions)
        self._table: CallTable | None = table
        self._own_pool = pool
        self._pool = pool or shared_pool(region.threads)
        self._bound = tuple(BoundMemory() for _ in self._ports)
        self._addresses = [0] * len(self._ports)
        self._writes_directly = not (
            region.checks or region.counted or region.copies or self._table.is_checked
        ) and self._table.slots == len(self._ports)

    def of_region(self, region: NativeRegion) -> NativeKernel:
        """Return a kernel with the same calls whose parameters and results are those of another region."""
        self._open_region()
        kernel = copy.copy(self)
        kernel._region = region
        kernel._ports = (*region.params, *region.results)
        kernel._bound = tuple(BoundMemory() for _ in kernel._ports)
        kernel._addresses = [0] * len(kernel._ports)
        return kernel

    @property
    def named_architecture(self) -> str | None:
        """As `CrossCompiledKernel.named_architecture`."""
        return named_architecture(self.source, self._open_region().isa)

    def blob(self) -> bytes | None:
        """The compiled form, for the same version of Intarsia on a CPU that has the same instructions."""
        from intarsia.toolchain.native.blob import write_blob

        return write_blob(self._open_region())

    def blob_parts(self) -> list[bytes | memoryview]:
        """Return the compiled form in parts, in order, without a copy of its constants."""
        from intarsia.toolchain.native.blob import blob_parts

        return blob_parts(self._open_region())

    def close(self) -> None:
        """Let go of code, arena, weights and threads of its own."""
        self._region = self._table = None
        self._functions = ()
        if self._own_pool is not None:
            self._own_pool.close()

    def clones(self, count: int, threads: int | None = None) -> Sequence[NativeKernel]:
        """As `ClonableKernel.clones`: code and weights are shared, arenas are not.

        Raises:
            CompileError: There is not as much memory as the arenas need.
            UsageError: The kernel is closed.
        """
        region, source = self._open_region(), source_on_threads(self.source, threads)
        if threads is not None:
            region = replace(region, threads=threads)
        has_pool = threads is not None and threads > 1
        return [
            NativeKernel(
                source,
                region,
                self._describe,
                self._functions,
                ThreadPool(region.threads) if has_pool else None,
            )
            for _ in range(count)
        ]

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`; what lies where it lay on the last call is not looked at again.

        Raises:
            ExecutionError: An array does not fit, or, after the run, a checked index is out of range.
        """
        region, table = self._open_region(), self._table
        assert table is not None
        if not self._writes_directly:
            return self._run_and_finish(region, table, inputs, outputs)
        results = [
            np.empty(port.shape, port.dtype) if given is None else given
            for given, port in zip(outputs, region.results, strict=True)
        ]
        values = (*inputs, *results)
        arrays = list(map(self._bind, range(len(values)), values, self._ports))
        table.run(self._pool, self._addresses)
        for result, array in zip(results, arrays[len(inputs) :], strict=True):
            if array is not result:
                np.copyto(result, array)
        return list(results)

    def _run_and_finish(
        self,
        region: NativeRegion,
        table: CallTable,
        inputs: Sequence[Value],
        outputs: Sequence[Array | None],
    ) -> list[Value]:
        """Run a region with results that are copied, cut, or checked afterwards."""
        counted = {result.position: result for result in region.counted}
        if region.checks:
            outputs = (*outputs, *(None,) * region.hidden_results)
        results = [
            np.empty(port.shape, port.dtype) if given is None or position in counted else given
            for position, (given, port) in enumerate(zip(outputs, region.results, strict=True))
        ]
        given = zip((*inputs, *results), self._ports, strict=True)
        arrays = [self._bind(position, value, port) for position, (value, port) in enumerate(given)]
        table.run(self._pool, self._addresses[: table.slots])
        written = arrays[len(region.params) :]
        for position, origin in region.copies:
            source = region.constants[origin.number].array if origin.kind is ArgumentKind.CONSTANT else None
            source = arrays[origin.number] if source is None else source
            np.copyto(written[position], source.reshape(written[position].shape))
        for result, array in zip(results, written, strict=True):
            if array is not result:
                np.copyto(result, array)
        for position, rows in counted.items():
            results[position] = rows.delivered(results[position], outputs[position])
        for check in region.checks:
            check.require_in_range(results[check.smallest], results[check.largest])
        return list(results[: len(results) - region.hidden_results])

    def bind(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> Callable[[], None] | None:
        """As `BindableKernel.bind`: nothing but the calls of the region is left for each run.

        Raises:
            ExecutionError: An array does not fit.
        """
        self._open_region()
        table = self._table
        assert table is not None
        if not self._writes_directly:
            return None
        pairs = zip((*inputs, *outputs), self._ports, strict=True)
        arrays = [_fitting(value, port) for value, port in pairs]
        addresses = [array_address(array) for array in arrays]
        if any(address % port.dtype.alignment for address, port in zip(addresses, self._ports, strict=True)):
            return None
        run = table.bind(self._pool, addresses)

        def run_on(arrays: Sequence[Array]) -> None:  # noqa: ARG001 - kept alive
            run()

        return functools.partial(run_on, arrays)

    def repeated_results(self) -> Sequence[tuple[tuple[int, ...], np.dtype[Any]]] | None:
        """As `RepeatableKernel.repeated_results`."""
        if not self._writes_directly:
            return None
        return [(port.shape, port.dtype) for port in self._open_region().results]

    def repeat(self, count: int, inputs: Sequence[AddressSeries], outputs: Sequence[AddressSeries]) -> None:
        """As `RepeatableKernel.repeat`: all calls of the region, again and again, are one table.

        Raises:
            ExecutionError: A parameter or result does not fit.
        """
        self._open_region()
        assert self._table is not None
        series = (*inputs, *outputs)
        for item, port in zip(series, self._ports, strict=True):
            _fitting(item.example, port)
            assert item.addresses.shape == (count,)
        self._table.run_repeatedly(self._pool, np.stack([item.addresses for item in series], axis=1))

    @property
    def call_keys(self) -> list[tuple[str, str]]:
        """The group of the rules, and the computation, of each call (`RegionCall`).

        Raises:
            UsageError: The kernel is closed.
        """
        return [(call.group, call.computation) for call in self._open_region().calls]

    @property
    def params(self) -> tuple[RegionPort, ...]:
        """The parameters.

        Raises:
            UsageError: The kernel is closed.
        """
        return tuple(self._open_region().params)

    @property
    def results(self) -> tuple[RegionPort, ...]:
        """The results for the caller.

        Raises:
            UsageError: The kernel is closed.
        """
        region = self._open_region()
        return tuple(region.results[: len(region.results) - region.hidden_results])

    def start_profiler(self) -> NativeProfiler:
        """As `ProfilableKernel.start_profiler`: the same calls with timestamps between them.

        Raises:
            UsageError: The kernel is closed.
        """
        from intarsia.toolchain.native.profiler import NativeProfiler

        region = self._open_region()
        assert self._table is not None
        timed = TimedTable(self._table, logs_loops=region.threads != 1)
        kernel = copy.copy(self)
        kernel._table = timed.table
        return NativeProfiler(kernel, region, timed, self._describe)

    def run_stepwise(
        self, inputs: Sequence[Value], outputs: Sequence[Array | None], pause: Callable[[], None]
    ) -> list[Value]:
        """As `CountableKernel.run_stepwise`: the calls of the region one by one.

        Raises:
            ExecutionError, UsageError: As `run`.
        """
        self._open_region()
        assert self._table is not None
        stepped = copy.copy(self)
        stepped._table = SteppedTable(self._table.calls, pause)
        return stepped.run(inputs, outputs)

    def call_seconds(self, inputs: Sequence[Value], repeats: int = 10) -> list[float]:
        """Return the seconds of each call of the region, in its position among the others: medians.

        Args:
            inputs: Inputs, as in `run`.
            repeats: Number of runs of the region.

        Raises:
            UsageError: The kernel is closed.
        """
        results = len(self._open_region().results) - self._open_region().hidden_results
        profiler = self.start_profiler()
        for _ in range(repeats + 1):
            profiler.run(inputs, [None] * results)
        times = profiler.call_nanoseconds()[1:]  # the first run meets cold caches
        return [float(value) * 1e-9 for value in np.median(times, axis=0)]

    def _bind(self, position: int, value: Value, port: RegionPort) -> Array:
        """The value, or an aligned copy of it; its address is noted."""
        bound = self._bound[position]
        if bound.is_at(value):
            assert isinstance(value, np.ndarray)
            return value
        bound.forget()
        array = _fitting(value, port)
        address = array_address(array)
        if address % port.dtype.alignment:
            misplaced, array = array, _aligned(port)
            np.copyto(array, misplaced)
            address = array_address(array)
        else:
            bound.note(array, address)
        self._addresses[position] = address
        return array

    def _open_region(self) -> NativeRegion:
        if self._region is None:
            raise UsageError("the kernel is closed")
        return self._region


def _fitting(value: Value, port: RegionPort) -> Array:
    if not isinstance(value, np.ndarray) or value.dtype != port.dtype or not value.flags.c_contiguous:
        found = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
        raise ExecutionError(f"{port.name!r} needs a contiguous {port.dtype} array, found {found}")
    if value.shape != port.shape:
        raise ExecutionError(f"{port.name!r} needs the shape {port.shape}, found {value.shape}")
    return value


def _aligned(port: RegionPort) -> Array:
    return allocate_aligned(port.nbytes).view(port.dtype).reshape(port.shape)


def shared_pool(threads: int) -> ThreadPool:
    """Return the pool of all kernels with as many threads that are made on these cores."""
    return _pool(threads, allowed_cores())


@functools.cache
def _pool(threads: int, cores: CoreGroup) -> ThreadPool:  # noqa: ARG001 - a key of the cache
    return ThreadPool(threads)
