"""The profiler of GPU programs: events of the GPU between its launches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Protocol

from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_clock import CudaClock
from intarsia.runtime.cuda.cuda_context import CudaContext, current_number
from intarsia.runtime.cuda.cuda_kernel import number_array, opened_gpu
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.runtime.kernel_profiler import KernelEvent, KernelRuns
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram
from intarsia.toolchain.source_graph import EngineKernel
from intarsia.toolchain.source_work import describe_kernels

_NOTE: Final = "times of GPU kernels are those of its events; each is waited for before the next one starts"


class PreparedOnGpu(Protocol):
    """A kernel whose launches can be started one by one."""

    @property
    def source(self) -> KernelSource:
        """Source of the kernel."""

    def prepare(
        self, gpu: CudaContext, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> tuple[LoadedProgram, list[CudaBuffer], list[int]]:
        """Return the program on a GPU, its results, and the addresses of parameters and results."""


class GpuProfiler:
    """Runs a program from arrays of the host, on the GPU that is current in the thread; times each launch.

    Args:
        kernel: The program.
    """

    def __init__(self, kernel: PreparedOnGpu) -> None:
        self._kernel = kernel
        self._clocks: dict[int, CudaClock] = {}
        self._launches: tuple[EngineKernel, ...] = ()
        self._runs: list[tuple[KernelEvent, ...]] = []

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `KernelProfiler.run`."""
        gpu = opened_gpu(current_number())
        if gpu.identity not in self._clocks:
            self._clocks[gpu.identity] = CudaClock(gpu)
        clock = self._clocks[gpu.identity]
        buffers = [gpu.put(number_array(value)) for value in inputs]
        program, results, slots = self._kernel.prepare(gpu, buffers, [None] * len(outputs))
        launches = program.program.launches
        self._launches = tuple(
            EngineKernel(launch.name, frozenset(launch.nodes), is_conversion=launch.is_conversion)
            for launch in launches
        )
        events, before = [], clock()
        shift = time.perf_counter_ns() - before
        for number, launch in enumerate(launches):
            program.launch_one(launch, slots)
            now = clock()
            events.append(KernelEvent(number, before + shift, now + shift))
            before = now
        program.copy_results(slots)
        self._runs.append(tuple(events))
        return [gpu.get(buffer, given) for buffer, given in zip(results, outputs, strict=True)]

    def forget_runs(self) -> None:
        """As `KernelProfiler.forget_runs`."""
        self._runs.clear()

    def stop(self) -> KernelRuns:
        """As `KernelProfiler.stop`."""
        for clock in self._clocks.values():
            clock.close()
        return KernelRuns(describe_kernels(self._kernel.source, self._launches), tuple(self._runs), (_NOTE,))
