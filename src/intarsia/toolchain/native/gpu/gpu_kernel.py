"""What the toolchain native compiles to for GPUs: a program of kernels, loaded on each GPU that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from intarsia.runtime.clones import source_on_threads
from intarsia.runtime.cuda.cuda_buffer import CudaBuffer
from intarsia.runtime.cuda.cuda_context import CudaContext, current_number
from intarsia.runtime.cuda.cuda_kernel import run_from_host
from intarsia.runtime.cuda.gpu_facts import gpus_here
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.support.errors import CompileError, ExecutionError, MissingToolchainError, UsageError
from intarsia.toolchain.native.gpu.compile_items import compile_any
from intarsia.toolchain.native.gpu.gpu_program import GpuProgram
from intarsia.toolchain.native.gpu.item_program import ItemProgram
from intarsia.toolchain.native.gpu.loaded_items import LoadedItems
from intarsia.toolchain.native.gpu.loaded_program import LoadedProgram
from intarsia.toolchain.native.region import RegionPort

if TYPE_CHECKING:
    from intarsia.toolchain.native.gpu.gpu_profiler import GpuProfiler

OLDEST: Final = "sm_80"
"""Oldest model of GPU that code is generated for; later ones run it too."""
_OLDEST_CAPABILITY: Final = (8, 0)
_OWN_MODELS: Final = {(9, 0): "sm_90a"}
"""Models with code of their own, by compute capability."""


def model_for(capability: tuple[int, int]) -> str:
    """Return the model that code for a GPU is generated for.

    Raises:
        CompileError: The GPU is too old.
    """
    if capability < _OLDEST_CAPABILITY:
        major, minor = capability
        raise CompileError(
            f"native cannot compile for a GPU of compute capability {major}.{minor}; expected 8.0 or later"
        )
    return _OWN_MODELS.get(capability, OLDEST)


def model_here() -> str:
    """Return the model that code for the current GPU of this thread is generated for.

    Raises:
        CompileError: The GPU is too old.
        MissingToolchainError: There is no GPU.
    """
    gpus = gpus_here()
    if gpus.unavailable is not None:
        raise MissingToolchainError(gpus.unavailable.reason, help=gpus.unavailable.help)
    return model_for(gpus.facts[min(current_number(), len(gpus.facts) - 1)].capability)


def compile_gpu_kernel(source: KernelSource) -> GpuKernel:
    """Compile a source for the GPU that is current in this thread; for others when they run it.

    Raises:
        CompileError: An operator has no GPU kernel, or a shape is not known.
        MissingToolchainError: There is no GPU.
    """
    model = model_here()
    return GpuKernel(source, {model: compile_any(source, model)})


class GpuKernel:
    """A program of GPU kernels; arrays of the host are copied to the first GPU and back.

    Args:
        source: Source of the program.
        programs: Programs by model of GPU.
    """

    def __init__(self, source: KernelSource, programs: dict[str, GpuProgram | ItemProgram]) -> None:
        self.source = source
        self._programs = programs
        self._loaded: dict[int, LoadedProgram | LoadedItems] = {}
        self._is_closed = False

    def blob(self) -> bytes | None:
        """None: an artifact has the source only, and the driver compiles for its own GPU anyway."""
        return None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        """As `Kernel.run`."""
        return run_from_host(self, inputs, outputs)

    def run_on_gpu(
        self, gpu: CudaContext, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> list[CudaBuffer]:
        """As `CudaKernel.run_on_gpu`."""
        program, results, slots = self.prepare(gpu, inputs, outputs)
        program.launch(slots)
        return results

    def prepare(
        self, gpu: CudaContext, inputs: Sequence[CudaBuffer], outputs: Sequence[CudaBuffer | None]
    ) -> tuple[LoadedProgram, list[CudaBuffer], list[int]]:
        """Load the program, and allocate what it writes; return it with its results, and addresses of all.

        Raises:
            ExecutionError: A buffer does not fit, or the driver refuses the code.
            MemoryError: The GPU has not as much memory.
        """
        loaded = self._on(gpu).for_shapes([buffer.shape for buffer in inputs])
        program = loaded.program
        if len(inputs) != len(program.params):
            raise ExecutionError(f"found {len(inputs)} inputs; expected {len(program.params)}")
        results = [
            gpu.new_buffer(port.shape, port.dtype) if given is None else given
            for given, port in zip(outputs, program.results, strict=True)
        ]
        buffers = [*inputs, *results]
        for buffer, port in zip(buffers, (*program.params, *program.results), strict=True):
            _check(buffer, port)
        return loaded, results, [buffer.address for buffer in buffers]

    def start_profiler(self) -> GpuProfiler:
        """As `ProfilableKernel.start_profiler`; times are those of the GPU's events."""
        from intarsia.toolchain.native.gpu.gpu_profiler import GpuProfiler

        return GpuProfiler(self)

    def clones(self, count: int, threads: int | None = None) -> Sequence[GpuKernel]:
        """As `ClonableKernel.clones`: code is shared, memory of GPUs is not."""
        self._refuse_if_closed()
        source = source_on_threads(self.source, threads)
        return [GpuKernel(source, self._programs) for _ in range(count)]

    def close(self) -> None:
        """Free the memory of GPUs that the program has."""
        self._is_closed = True
        while self._loaded:
            self._loaded.popitem()[1].close()

    def _on(self, gpu: CudaContext) -> LoadedProgram | LoadedItems:
        self._refuse_if_closed()
        loaded = self._loaded.get(gpu.identity)
        if loaded is None:
            model = model_for(gpu.capability)
            if model not in self._programs:
                self._programs[model] = compile_any(self.source, model)
            loaded = self._loaded[gpu.identity] = _loaded(gpu, self._programs[model])
        return loaded

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise UsageError("the kernel is closed")


def _loaded(gpu: CudaContext, program: GpuProgram | ItemProgram) -> LoadedProgram | LoadedItems:
    return LoadedItems(gpu, program) if isinstance(program, ItemProgram) else LoadedProgram(gpu, program)


def _check(buffer: CudaBuffer, port: RegionPort) -> None:
    if (buffer.shape, buffer.dtype) != (port.shape, port.dtype):
        given = f"{buffer.dtype}{list(buffer.shape)}"
        raise ExecutionError(f"{port.name} is {given}; expected {port.dtype}{list(port.shape)}")
