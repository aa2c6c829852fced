"""A program of GPU kernels in the memory of a GPU: its weights are uploaded once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from intarsia.runtime.cuda.cuda_context import CudaContext, CudaModule
from intarsia.runtime.cuda.cuda_graph import CudaGraph
from intarsia.runtime.cuda.driver import GpuLostError
from intarsia.runtime.kernel import Array
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.toolchain.native.gpu.gpu_program import GpuLaunch, GpuProgram
from intarsia.toolchain.native.region import Argument, ArgumentKind, RegionConstant, RegionPort

_LEAST_LAUNCHES: Final = 2
_MOST_GRAPHS: Final = 8
"""Recorded launches that a program keeps: those of a program on devices always have the same addresses."""


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What programs that differ in sizes share on a GPU.

    Attributes:
        module: Their code.
        constants: Addresses of their constants, but for the first ones, which are numbers of items.
        arena: Address of memory that is large enough for the values of each of them.
    """

    module: CudaModule
    constants: tuple[int, ...]
    arena: int


class LoadedProgram:
    """A program on a GPU: its code, its constants, and memory for the values between its kernels.

    Args:
        context: The GPU.
        program: The program; its code must be for this GPU or an earlier one.
        shared: Code, constants and arena that belong to others; its own if not given.

    Raises:
        MemoryError: The GPU has not as much memory.
        ExecutionError: The driver refuses the code.
    """

    def __init__(self, context: CudaContext, program: GpuProgram, shared: SharedParts | None = None) -> None:
        self.program = program
        self._is_sharing = shared is not None
        self._context = context
        self._addresses: list[int] = []
        self._slots: list[int] = []
        self._graphs: dict[tuple[int, ...], CudaGraph] = {}
        self._last: tuple[int, ...] = ()
        self._module: CudaModule | None = None
        try:
            if shared is None:
                self._place(program)
            else:
                self._module, self._arena = shared.module, shared.arena
                numbers = program.constants[: len(program.constants) - len(shared.constants)]
                self._constants = [*map(self._uploaded, numbers), *shared.constants]
        except BaseException:
            self.close()
            raise

    def _place(self, program: GpuProgram) -> None:
        symbols = list(dict.fromkeys(launch.symbol for launch in program.launches))
        self._module = self._context.load(program.image, symbols)
        for launch in program.launches:
            if launch.shared_bytes:
                self._context.allow_shared(self._module.functions[launch.symbol], launch.shared_bytes)
        self._arena = self._allocate(program.arena_bytes)
        self._constants = [self._uploaded(constant) for constant in program.constants]
        self._context.synchronize()

    def _uploaded(self, constant: RegionConstant) -> int:
        """Return the address of a constant, which is copied to the GPU."""
        address = self._allocate(constant.array.nbytes)
        self._context.upload(address, np.ascontiguousarray(constant.array))
        return address

    def shared_parts(self, arena: int, numbers: int) -> SharedParts:
        """Return what programs of other sizes share with this one, around an arena of theirs.

        Args:
            arena: Address of the arena.
            numbers: Number of constants, the first ones, that are different.

        Raises:
            UsageError: The program is closed.
        """
        if self._module is None:
            raise UsageError("this program is closed")
        return SharedParts(self._module, tuple(self._constants[numbers:]), arena)

    def for_shapes(self, shapes: Sequence[tuple[int, ...]]) -> LoadedProgram:  # noqa: ARG002  # as LoadedItems
        """Return the program that runs parameters of given shapes: this one, which refuses others later."""
        return self

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Compute the results from arrays of the host.

        Raises:
            ExecutionError: An array does not fit, or a kernel failed.
        """
        self.upload(inputs)
        self.launch()
        return self.download()

    def upload(self, inputs: Sequence[Array]) -> None:
        """Copy the parameters to memory of the program's own.

        Raises:
            ExecutionError: An array does not fit.
        """
        params = self.program.params
        if len(inputs) != len(params):
            raise ExecutionError(f"found {len(inputs)} inputs; expected {len(params)}")
        arrays = [_fitting(array, port) for array, port in zip(inputs, params, strict=True)]
        for array, address in zip(arrays, self._own_slots(), strict=False):
            self._context.upload(address, array)

    def launch(self, slots: Sequence[int] | None = None) -> None:
        """Start all kernels; it does not wait for them.

        Addresses that come a second time are expected to come again: their launches are recorded.

        Args:
            slots: Addresses of the parameters, then of the results; those of the program's own memory, with
                the parameters that were uploaded last, if not given.
        """
        slots = self._own_slots() if slots is None else slots
        graph = self._graph_for(tuple(slots))
        if graph is None:
            self.launch_each(slots)
        else:
            graph.launch()

    def _graph_for(self, slots: tuple[int, ...]) -> CudaGraph | None:
        """Return the recorded launches on addresses; None if they are not those of the last call."""
        graph, is_again, self._last = self._graphs.get(slots), slots == self._last, slots
        if graph is not None or not is_again or len(self.program.launches) < _LEAST_LAUNCHES:
            return graph
        graph = self._graphs[slots] = CudaGraph.record(self._context, partial(self.launch_each, slots))
        if len(self._graphs) > _MOST_GRAPHS:
            self._context.synchronize()  # the oldest may be under way
            self._graphs.pop(next(iter(self._graphs))).close()
        return graph

    def launch_each(self, slots: Sequence[int]) -> None:
        """Start all kernels one by one, as `launch` does without a recording."""
        for launch in self.program.launches:
            self.launch_one(launch, slots)
        self.copy_results(slots)

    def launch_one(self, launch: GpuLaunch, slots: Sequence[int] | None = None) -> None:
        """Start one kernel of the program on `slots`, as `launch` does; it does not wait for it."""
        if self._module is None:
            raise UsageError("this program is closed")
        slots = self._own_slots() if slots is None else slots
        addresses = [self._address(argument, slots) for argument in launch.arguments]
        function = self._module.functions[launch.symbol]
        self._context.launch(function, launch.blocks, launch.threads, addresses, launch.shared_bytes)

    def copy_results(self, slots: Sequence[int]) -> None:
        """Start the copies of results that no kernel writes."""
        for position, origin in self.program.copies:
            size = self.program.results[position].nbytes
            target = slots[len(self.program.params) + position]
            self._context.copy(target, self._address(origin, slots), size)

    def download(self) -> list[Array]:
        """Wait for the kernels, and return copies of the results.

        Raises:
            ExecutionError: A kernel failed.
        """
        arrays = [np.empty(port.shape, port.dtype) for port in self.program.results]
        for array, address in zip(arrays, self._own_slots()[len(self.program.params) :], strict=True):
            self._context.download(array, address)
        return arrays

    def close(self) -> None:
        """Free the program's memory on the GPU; nothing remains to be done once the GPU is closed."""
        module, self._module = self._module, None
        if not self._context.is_closed:
            with suppress(ExecutionError):  # of a kernel that is under way; a failed call leaves some behind
                self._context.synchronize()
        while self._graphs:
            self._graphs.popitem()[1].close()
        if self._context.is_closed:
            return
        for address in self._addresses:
            self._context.pool.free(address)
        self._addresses.clear()
        self._slots.clear()
        if module is not None and not self._is_sharing:
            with suppress(GpuLostError):  # then the driver frees nothing any more
                self._context.unload(module)

    def _own_slots(self) -> list[int]:
        """Return memory of the program's own for parameters and results, allocated at the first call."""
        if self._module is None:
            raise UsageError("this program is closed")
        if not self._slots:
            ports = (*self.program.params, *self.program.results)
            self._slots = [self._allocate(port.nbytes) for port in ports]
        return self._slots

    def _allocate(self, size: int) -> int:
        self._addresses.append(self._context.pool.allocate(size))
        return self._addresses[-1]

    def _address(self, argument: Argument, slots: Sequence[int]) -> int:
        match argument.kind:
            case ArgumentKind.SLOT:
                return slots[argument.number]
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
