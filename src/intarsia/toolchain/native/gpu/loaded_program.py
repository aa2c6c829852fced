"""A program of GPU kernels in the memory of a GPU: its weights are uploaded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.runtime.cuda.cuda_context import CudaContext, CudaModule
from intarsia.runtime.kernel import Array
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.toolchain.native.gpu.gpu_program import GpuLaunch, GpuProgram
from intarsia.toolchain.native.region import Argument, ArgumentKind, RegionPort


class LoadedProgram:
    """A program on a GPU, with memory of its own for parameters and results.

    Args:
        context: The GPU.
        program: The program; its code must be for this GPU or an earlier one.

    Raises:
        MemoryError: The GPU has not as much memory.
        ExecutionError: The driver refuses the code.
    """

    def __init__(self, context: CudaContext, program: GpuProgram) -> None:
        self.program = program
        self._context = context
        self._addresses: list[int] = []
        self._module: CudaModule | None = None
        try:
            self._place(program)
        except BaseException:
            self.close()
            raise

    def _place(self, program: GpuProgram) -> None:
        symbols = list(dict.fromkeys(launch.symbol for launch in program.launches))
        self._module = self._context.load(program.image, symbols)
        self._arena = self._allocate(program.arena_bytes)
        self._slots = [self._allocate(port.nbytes) for port in (*program.params, *program.results)]
        self._constants = []
        for constant in program.constants:
            address = self._allocate(constant.array.nbytes)
            self._context.upload(address, np.ascontiguousarray(constant.array))
            self._constants.append(address)
        self._context.synchronize()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Compute the results from arrays of the host.

        Raises:
            ExecutionError: An array does not fit, or a kernel failed.
        """
        self.upload(inputs)
        self.launch()
        return self.download()

    def upload(self, inputs: Sequence[Array]) -> None:
        """Copy the parameters to the GPU.

        Raises:
            ExecutionError: An array does not fit.
        """
        params = self.program.params
        if len(inputs) != len(params):
            raise ExecutionError(f"found {len(inputs)} inputs; expected {len(params)}")
        arrays = [_fitting(array, port) for array, port in zip(inputs, params, strict=True)]
        for array, address in zip(arrays, self._slots, strict=False):
            self._context.upload(address, array)
        self._context.synchronize()  # the arrays may change or go once this returns

    def launch(self) -> None:
        """Start all kernels on the parameters that were uploaded last; it does not wait for them."""
        for launch in self.program.launches:
            self.launch_one(launch)
        for position, origin in self.program.copies:
            size = self.program.results[position].nbytes
            self._context.copy(self._slots[len(self.program.params) + position], self._address(origin), size)

    def launch_one(self, launch: GpuLaunch) -> None:
        """Start one kernel of the program; it does not wait for it."""
        if self._module is None:
            raise UsageError("this program is closed")
        addresses = [self._address(argument) for argument in launch.arguments]
        function = self._module.functions[launch.symbol]
        self._context.launch(function, launch.blocks, launch.threads, addresses)

    def download(self) -> list[Array]:
        """Wait for the kernels, and return copies of the results.

        Raises:
            ExecutionError: A kernel failed.
        """
        arrays = [np.empty(port.shape, port.dtype) for port in self.program.results]
        for array, address in zip(arrays, self._slots[len(self.program.params) :], strict=True):
            self._context.download(array, address)
        return arrays

    def close(self) -> None:
        """Free the program's memory on the GPU."""
        for address in self._addresses:
            self._context.pool.free(address)
        self._addresses.clear()
        if self._module is not None:
            module, self._module = self._module, None
            self._context.unload(module)

    def _allocate(self, size: int) -> int:
        self._addresses.append(self._context.pool.allocate(size))
        return self._addresses[-1]

    def _address(self, argument: Argument) -> int:
        match argument.kind:
            case ArgumentKind.SLOT:
                return self._slots[argument.number]
            case ArgumentKind.ARENA:
                return self._arena + argument.number
            case ArgumentKind.CONSTANT:
                return self._constants[argument.number]


def _fitting(array: Array, port: RegionPort) -> Array:
    if array.shape != port.shape or array.dtype != port.dtype:
        raise ExecutionError(
            f"{port.name} is {array.dtype}{list(array.shape)}; expected {port.dtype}{list(port.shape)}"
        )
    return np.ascontiguousarray(array)
