"""Time by the events of a GPU: when it has done what was started, whatever the host does meanwhile."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from intarsia.runtime.cuda.cuda_context import CudaContext


class CudaClock:
    """A clock in nanoseconds, for the timing of functions that only start work of a GPU.

    A call records an event behind all that was started, waits for it, and adds the time since the event
    before; the driver's times are too coarse for long spans.

    Args:
        gpu: The GPU.
    """

    def __init__(self, gpu: CudaContext) -> None:
        self._gpu = gpu
        self._last, self._next = (self._new_event() for _ in range(2))
        self._total = 0.0
        self._record(self._last)

    def __call__(self) -> int:
        """Return the time in nanoseconds.

        Raises:
            ExecutionError: A kernel failed.
        """
        elapsed = ctypes.c_float()
        self._record(self._next)
        self._gpu.call("cuEventElapsedTime", ctypes.byref(elapsed), self._last, self._next)
        self._total += elapsed.value * 1e6
        self._last, self._next = self._next, self._last
        return round(self._total)

    def seconds(self, work: Callable[[], None]) -> float:
        """Run work that only starts work of the GPU; return the time that the GPU took, in seconds."""
        self()
        before = self._total
        work()
        self()
        return (self._total - before) * 1e-9

    def close(self) -> None:
        """Destroy the events."""
        for event in (self._last, self._next):
            self._gpu.call("cuEventDestroy_v2", event)

    def _new_event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._gpu.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def _record(self, event: ctypes.c_void_p) -> None:
        self._gpu.call("cuEventRecord", event, self._gpu.stream)
        self._gpu.call("cuEventSynchronize", event)
