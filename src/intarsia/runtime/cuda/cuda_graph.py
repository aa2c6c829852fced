"""Work of a GPU that is recorded once, and started by a single call of the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from intarsia.runtime.cuda.cuda_context import CudaContext
from intarsia.runtime.cuda.driver import GpuLostError
from intarsia.support.errors import ExecutionError

_RELAXED = 2
"""Mode of a capture: other threads may call the driver meanwhile."""


@dataclass(frozen=True, slots=True)
class CudaGraph:
    """Recorded work, on the same addresses each time.

    Attributes:
        gpu: The GPU.
        handle: The driver's handle.
    """

    gpu: CudaContext
    handle: ctypes.c_void_p

    @classmethod
    def record(cls, gpu: CudaContext, work: Callable[[], None]) -> CudaGraph:
        """Record work without doing it.

        Args:
            gpu: The GPU.
            work: Function that only starts kernels and copies inside the GPU, in the stream of the GPU.

        Raises:
            ExecutionError: The driver refuses the work.
        """
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        gpu.call("cuStreamBeginCapture_v2", gpu.stream, _RELAXED)
        try:
            work()
        except BaseException:
            with suppress(ExecutionError):  # the stream must not stay as it is
                gpu.call("cuStreamEndCapture", gpu.stream, ctypes.byref(graph))
                gpu.call("cuGraphDestroy", graph)
            raise
        gpu.call("cuStreamEndCapture", gpu.stream, ctypes.byref(graph))
        try:
            gpu.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, 0)
        finally:
            gpu.call("cuGraphDestroy", graph)
        return cls(gpu, executable)

    def launch(self) -> None:
        """Start the work, behind all that was started before.

        Raises:
            ExecutionError: The driver failed.
        """
        self.gpu.call("cuGraphLaunch", self.handle, self.gpu.stream)

    def close(self) -> None:
        """Forget the work, once no launch of it is under way."""
        if not self.gpu.is_closed:
            with suppress(GpuLostError):  # then the driver frees nothing any more
                self.gpu.call("cuGraphExecDestroy", self.handle)
