"""Kernels by the sizes of a call, made when these are met first."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.errors import UsageError
from intarsia.toolchain.native.batches.batched_profiler import BatchedProfiler, RunKernel
from intarsia.toolchain.native.foreign_kernel import named_architecture
from intarsia.toolchain.native.kernel import NativeKernel
from intarsia.toolchain.native.region import NativeRegion
from intarsia.toolchain.native.result_arrays import ResultArrays, given_or_new

if TYPE_CHECKING:
    from intarsia.toolchain.native.profiler import NativeProfiler

_MOST_SIZES: Final = 64
"""Sizes whose tables of calls are kept; a table has a few KiB, and is made in a millisecond."""
Opened = TypeVar("Opened")


class SizedKernels(ABC):
    """A kernel whose calls of some sizes are run by a table of calls; the least recently used one goes.

    Args:
        source: Source with dimensions of any size.
        results: Number of results.
    """

    def __init__(self, source: KernelSource, results: int) -> None:
        self.source = source
        self._results = ResultArrays([0] * results)
        self._kernels: OrderedDict[tuple[int, ...], NativeKernel] = OrderedDict()

    @property
    def named_architecture(self) -> str | None:
        """As `CrossCompiledKernel.named_architecture`."""
        return named_architecture(self.source, self._region().isa)

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`, for any sizes.

        Raises:
            ExecutionError: An array does not fit, or the kernels do not run these sizes.
        """
        kernel = self._kernel(self._sizes(inputs))
        return kernel.run(inputs, given_or_new(outputs, self._results.makers(kernel.results)))

    def bind(self, inputs: Sequence[Value], outputs: Sequence[Array]) -> Callable[[], None] | None:
        """As `BindableKernel.bind`.

        Raises:
            ExecutionError: An array does not fit, or the kernels do not run these sizes.
        """
        return self._kernel(self._sizes(inputs)).bind(inputs, outputs)

    def start_profiler(self) -> BatchedProfiler[tuple[int, ...]]:
        """As `ProfilableKernel.start_profiler`: a profiler for all sizes that are met.

        Raises:
            UsageError: The kernel is closed.
        """
        self._region()
        return BatchedProfiler(self._run_apart, _Profilers(self._profiler))

    @abstractmethod
    def _region(self) -> NativeRegion:
        """Return the region."""

    @abstractmethod
    def _sizes(self, inputs: Sequence[Value]) -> tuple[int, ...]:
        """Return the sizes of a call."""

    @abstractmethod
    def _made(self, sizes: tuple[int, ...]) -> NativeKernel:
        """Return the kernel for sizes that are not kept."""

    def _opened(self, whole: Opened | None) -> Opened:
        if whole is None:
            raise UsageError("the kernel is closed")
        return whole

    def _forget(self) -> None:
        for kernel in self._kernels.values():
            kernel.close()
        self._kernels.clear()

    def _kernel(self, sizes: tuple[int, ...]) -> NativeKernel:
        kernel = self._kernels.get(sizes)
        if kernel is None:
            sized = self._made(sizes)
            kernel = self._kernels[sizes] = sized
            if len(self._kernels) > _MOST_SIZES:
                self._kernels.popitem(last=False)
        else:
            self._kernels.move_to_end(sizes)
        return kernel

    def _profiler(self, sizes: tuple[int, ...]) -> NativeProfiler:
        return copy.copy(self._kernel(sizes)).start_profiler()

    def _run_apart(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Array | None],
        run: Callable[[tuple[int, ...]], RunKernel],
    ) -> list[Value]:
        sizes = self._sizes(inputs)
        makers = self._results.makers(self._kernel(sizes).results)
        return run(sizes)(inputs, given_or_new(outputs, makers))


class _Profilers(dict[tuple[int, ...], "NativeProfiler"]):
    """Profilers by sizes, each made when it is needed first."""

    def __init__(self, start: Callable[[tuple[int, ...]], NativeProfiler]) -> None:
        super().__init__()
        self._start = start

    def __missing__(self, sizes: tuple[int, ...]) -> NativeProfiler:
        profiler = self[sizes] = self._start(sizes)
        return profiler
