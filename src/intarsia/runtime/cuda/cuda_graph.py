"""Work of a GPU that is recorded once, and started by a single call of the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from intarsia.runtime.cuda.cuda_context import STREAM_APART, CudaContext
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
        """Record work without doing it; what other threads start on the GPU meanwhile is done as always.

        Args:
            gpu: The GPU.
            work: Function that only starts kernels and copies inside the GPU, in `gpu.stream`.

        Raises:
            ExecutionError: The driver refuses the work.
        """
        graph, executable = _captured(gpu, work), ctypes.c_void_p()
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


def _captured(gpu: CudaContext, work: Callable[[], None]) -> ctypes.c_void_p:
    """Return the driver's handle of the graph of work.

    A stream of its own is captured: in that of the GPU, copies that other threads start would be recorded too
    in place of being done.
    """
    graph, stream = ctypes.c_void_p(), ctypes.c_void_p()
    gpu.call("cuStreamCreate", ctypes.byref(stream), STREAM_APART)
    try:
        gpu.call("cuStreamBeginCapture_v2", stream, _RELAXED)
        try:
            with gpu.recorded_in(stream):
                work()
        except BaseException:
            with suppress(ExecutionError):  # what has failed is the work
                gpu.call("cuStreamEndCapture", stream, ctypes.byref(graph))
                gpu.call("cuGraphDestroy", graph)
            raise
        gpu.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        return graph
    finally:
        gpu.call("cuStreamDestroy_v2", stream)
